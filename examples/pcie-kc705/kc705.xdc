# KC705 (AMD UG810): clocks, one lane, and 16 nodes at the FMC HPC connector: for node k, the pins 5 k to 5 k + 3 in the
# order LA00_P, LA00_N, LA01_P, ... are its data bits, and the next one is its strobe.
set_property -dict {PACKAGE_PIN AD12 IOSTANDARD LVDS} [get_ports clk200_p]
set_property -dict {PACKAGE_PIN AD11 IOSTANDARD LVDS} [get_ports clk200_n]
set_property PACKAGE_PIN U8 [get_ports pcie_clk_p]
set_property PACKAGE_PIN U7 [get_ports pcie_clk_n]
set_property -dict {PACKAGE_PIN G25 IOSTANDARD LVCMOS25 PULLUP true} [get_ports pcie_rst_n]
set_false_path -from [get_ports pcie_rst_n]
create_clock -name pcie_clk -period 10.0 [get_ports pcie_clk_p]
set_property -dict {PACKAGE_PIN AB8 IOSTANDARD LVCMOS15} [get_ports led]
# The lane's pins follow from the block's location; these are those of lane 0 in the slot.
set_property PACKAGE_PIN M6 [get_ports pcie_rx_p]
set_property PACKAGE_PIN L4 [get_ports pcie_tx_p]

# Capture clock and link are unrelated: every path between them is a crossing (hdl/transport/beat_crossing.py).
set_clock_groups -asynchronous -group [get_clocks -include_generated_clocks -of_objects [get_ports clk200_p]] \
    -group [get_clocks -include_generated_clocks pcie_clk]

# VADJ is 2.5 V: nodes of 3.3 V or 5 V need level shifters. Pull-downs keep an input that is not connected quiet.
set_property -dict {PACKAGE_PIN C25 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[0]}]  ;# LA00_P
set_property -dict {PACKAGE_PIN B25 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[1]}]  ;# LA00_N
set_property -dict {PACKAGE_PIN D26 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[2]}]  ;# LA01_P
set_property -dict {PACKAGE_PIN C26 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[3]}]  ;# LA01_N
set_property -dict {PACKAGE_PIN H24 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {strobe[0]}]  ;# LA02_P
set_property -dict {PACKAGE_PIN H25 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[4]}]  ;# LA02_N
set_property -dict {PACKAGE_PIN H26 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[5]}]  ;# LA03_P
set_property -dict {PACKAGE_PIN H27 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[6]}]  ;# LA03_N
set_property -dict {PACKAGE_PIN G28 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[7]}]  ;# LA04_P
set_property -dict {PACKAGE_PIN F28 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {strobe[1]}]  ;# LA04_N
set_property -dict {PACKAGE_PIN G29 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[8]}]  ;# LA05_P
set_property -dict {PACKAGE_PIN F30 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[9]}]  ;# LA05_N
set_property -dict {PACKAGE_PIN H30 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[10]}]  ;# LA06_P
set_property -dict {PACKAGE_PIN G30 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[11]}]  ;# LA06_N
set_property -dict {PACKAGE_PIN E28 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {strobe[2]}]  ;# LA07_P
set_property -dict {PACKAGE_PIN D28 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[12]}]  ;# LA07_N
set_property -dict {PACKAGE_PIN E29 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[13]}]  ;# LA08_P
set_property -dict {PACKAGE_PIN E30 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[14]}]  ;# LA08_N
set_property -dict {PACKAGE_PIN B30 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[15]}]  ;# LA09_P
set_property -dict {PACKAGE_PIN A30 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {strobe[3]}]  ;# LA09_N
set_property -dict {PACKAGE_PIN D29 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[16]}]  ;# LA10_P
set_property -dict {PACKAGE_PIN C30 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[17]}]  ;# LA10_N
set_property -dict {PACKAGE_PIN G27 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[18]}]  ;# LA11_P
set_property -dict {PACKAGE_PIN F27 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[19]}]  ;# LA11_N
set_property -dict {PACKAGE_PIN C29 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {strobe[4]}]  ;# LA12_P
set_property -dict {PACKAGE_PIN B29 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[20]}]  ;# LA12_N
set_property -dict {PACKAGE_PIN A25 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[21]}]  ;# LA13_P
set_property -dict {PACKAGE_PIN A26 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[22]}]  ;# LA13_N
set_property -dict {PACKAGE_PIN B28 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[23]}]  ;# LA14_P
set_property -dict {PACKAGE_PIN A28 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {strobe[5]}]  ;# LA14_N
set_property -dict {PACKAGE_PIN C24 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[24]}]  ;# LA15_P
set_property -dict {PACKAGE_PIN B24 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[25]}]  ;# LA15_N
set_property -dict {PACKAGE_PIN B27 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[26]}]  ;# LA16_P
set_property -dict {PACKAGE_PIN A27 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[27]}]  ;# LA16_N
set_property -dict {PACKAGE_PIN F20 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {strobe[6]}]  ;# LA17_P
set_property -dict {PACKAGE_PIN E20 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[28]}]  ;# LA17_N
set_property -dict {PACKAGE_PIN F21 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[29]}]  ;# LA18_P
set_property -dict {PACKAGE_PIN E21 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[30]}]  ;# LA18_N
set_property -dict {PACKAGE_PIN G18 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[31]}]  ;# LA19_P
set_property -dict {PACKAGE_PIN F18 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {strobe[7]}]  ;# LA19_N
set_property -dict {PACKAGE_PIN E19 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[32]}]  ;# LA20_P
set_property -dict {PACKAGE_PIN D19 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[33]}]  ;# LA20_N
set_property -dict {PACKAGE_PIN A20 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[34]}]  ;# LA21_P
set_property -dict {PACKAGE_PIN A21 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[35]}]  ;# LA21_N
set_property -dict {PACKAGE_PIN C20 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {strobe[8]}]  ;# LA22_P
set_property -dict {PACKAGE_PIN B20 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[36]}]  ;# LA22_N
set_property -dict {PACKAGE_PIN B22 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[37]}]  ;# LA23_P
set_property -dict {PACKAGE_PIN A22 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[38]}]  ;# LA23_N
set_property -dict {PACKAGE_PIN A16 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[39]}]  ;# LA24_P
set_property -dict {PACKAGE_PIN A17 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {strobe[9]}]  ;# LA24_N
set_property -dict {PACKAGE_PIN G17 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[40]}]  ;# LA25_P
set_property -dict {PACKAGE_PIN F17 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[41]}]  ;# LA25_N
set_property -dict {PACKAGE_PIN B18 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[42]}]  ;# LA26_P
set_property -dict {PACKAGE_PIN A18 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[43]}]  ;# LA26_N
set_property -dict {PACKAGE_PIN C19 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {strobe[10]}]  ;# LA27_P
set_property -dict {PACKAGE_PIN B19 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[44]}]  ;# LA27_N
set_property -dict {PACKAGE_PIN D16 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[45]}]  ;# LA28_P
set_property -dict {PACKAGE_PIN C16 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[46]}]  ;# LA28_N
set_property -dict {PACKAGE_PIN C17 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[47]}]  ;# LA29_P
set_property -dict {PACKAGE_PIN B17 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {strobe[11]}]  ;# LA29_N
set_property -dict {PACKAGE_PIN D22 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[48]}]  ;# LA30_P
set_property -dict {PACKAGE_PIN C22 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[49]}]  ;# LA30_N
set_property -dict {PACKAGE_PIN G22 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[50]}]  ;# LA31_P
set_property -dict {PACKAGE_PIN F22 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[51]}]  ;# LA31_N
set_property -dict {PACKAGE_PIN D21 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {strobe[12]}]  ;# LA32_P
set_property -dict {PACKAGE_PIN C21 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[52]}]  ;# LA32_N
set_property -dict {PACKAGE_PIN H21 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[53]}]  ;# LA33_P
set_property -dict {PACKAGE_PIN H22 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[54]}]  ;# LA33_N
set_property -dict {PACKAGE_PIN D12 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[55]}]  ;# HA00_P
set_property -dict {PACKAGE_PIN D13 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {strobe[13]}]  ;# HA00_N
set_property -dict {PACKAGE_PIN H14 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[56]}]  ;# HA01_P
set_property -dict {PACKAGE_PIN G14 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[57]}]  ;# HA01_N
set_property -dict {PACKAGE_PIN D11 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[58]}]  ;# HA02_P
set_property -dict {PACKAGE_PIN C11 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[59]}]  ;# HA02_N
set_property -dict {PACKAGE_PIN C12 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {strobe[14]}]  ;# HA03_P
set_property -dict {PACKAGE_PIN B12 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[60]}]  ;# HA03_N
set_property -dict {PACKAGE_PIN F11 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[61]}]  ;# HA04_P
set_property -dict {PACKAGE_PIN E11 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[62]}]  ;# HA04_N
set_property -dict {PACKAGE_PIN F15 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {data[63]}]  ;# HA05_P
set_property -dict {PACKAGE_PIN E16 IOSTANDARD LVCMOS25 PULLDOWN true} [get_ports {strobe[15]}]  ;# HA05_N
