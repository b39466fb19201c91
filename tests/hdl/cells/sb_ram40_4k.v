// SB_RAM40_4K, the block RAM of Lattice's iCE40, 256 words of 16 bits: a model for simulation and proofs, after Lattice
// FPGA-TN-02002, "Memory Usage Guide for iCE40 Devices". Ports and parameters are those of Yosys's ice40/cells_sim.v.
//
// A bit of MASK keeps the one of WDATA out. What is read at the clock at which it is written is not defined; here it is
// garbage, so that whoever relies on it is found out.
module SB_RAM40_4K #(parameter READ_MODE = 0, parameter WRITE_MODE = 0) (
    input RCLK, RCLKE, RE, WCLK, WCLKE, WE, input [10:0] RADDR, WADDR, input [15:0] MASK, WDATA,
    output reg [15:0] RDATA
);
    reg [15:0] mem [0:255];
    wire writes = WCLKE && WE;

    initial RDATA = 0;
    always @(posedge WCLK)
        if (writes) mem[WADDR[7:0]] <= (mem[WADDR[7:0]] & MASK) | (WDATA & ~MASK);
    always @(posedge RCLK)
        if (RCLKE && RE) RDATA <= writes && WADDR[7:0] == RADDR[7:0] ? ~mem[RADDR[7:0]] : mem[RADDR[7:0]];
endmodule
