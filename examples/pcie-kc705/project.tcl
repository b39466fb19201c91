# A Vivado project of a board in a PCIe slot: AMD KC705, 16 nodes at its FMC HPC connector, one lane.
#
#   make verilog ARGS="--link pcie-s7"          # writes .build/verilog/hypermon.v; or python -m hypermon.hdl.verilog -o ...
#   vivado -mode batch -source examples/pcie-kc705/project.tcl -tclargs path/to/hypermon.v
#
# The project is in .build/pcie-kc705. Not run yet: see docs/pcie-boards.md.

if {$argc != 1 || ![file exists [lindex $argv 0]]} {
    puts "project.tcl: give the Verilog that --link pcie-s7 writes: -tclargs path/to/hypermon.v"
    exit 1
}
set here [file dirname [file normalize [info script]]]
create_project -force pcie-kc705 .build/pcie-kc705 -part xc7k325tffg900-2
add_files -norecurse [list [file normalize [lindex $argv 0]] $here/kc705.v]
add_files -fileset constrs_1 -norecurse $here/kc705.xdc
set_property top kc705 [current_fileset]

# The block of PG054: what docs/pcie.md states under "Wiring".
create_ip -name pcie_7x -vendor xilinx.com -library ip -module_name pcie_block
set_property -dict [list \
    CONFIG.mode_selection {Advanced} \
    CONFIG.Maximum_Link_Width {X1} CONFIG.Link_Speed {2.5_GT/s} CONFIG.Trgt_Link_Speed {4'h1} \
    CONFIG.Interface_Width {64_bit} CONFIG.User_Clk_Freq {62.5} CONFIG.Ref_Clk_Freq {100_MHz} \
    CONFIG.Max_Payload_Size {512_bytes} CONFIG.Trim_TLP_Digest {true} \
    CONFIG.Vendor_ID {1209} CONFIG.Device_ID {0001} \
    CONFIG.Bar0_Scale {Kilobytes} CONFIG.Bar0_Size {8} CONFIG.Expansion_Rom_Enabled {false} \
    CONFIG.IntX_Generation {false} CONFIG.Legacy_Interrupt {NONE} CONFIG.Multiple_Message_Capable {1_vector} \
] [get_ips pcie_block]
generate_target all [get_ips pcie_block]

# The clock of the capture core: 100 MHz from the board's 200 MHz.
create_ip -name clk_wiz -vendor xilinx.com -library ip -module_name capture_clock
set_property -dict [list \
    CONFIG.PRIM_SOURCE {Differential_clock_capable_pin} CONFIG.PRIM_IN_FREQ {200.000} \
    CONFIG.CLKOUT1_REQUESTED_OUT_FREQ {100.000} CONFIG.USE_RESET {false} \
] [get_ips capture_clock]
generate_target all [get_ips capture_clock]
puts "project.tcl: .build/pcie-kc705/pcie-kc705.xpr; launch_runs impl_1 -to_step write_bitstream builds it"
