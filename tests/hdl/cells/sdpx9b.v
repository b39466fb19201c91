// SDPX9B, Gowin's block RAM of 18 kbit with a port for writing and one for reading: a model for simulation and
// proofs, after Gowin UG285, "Gowin BSRAM & SSRAM User Guide". Ports and parameters are those of Yosys's
// gowin/cells_xtra_gw1n.v; both ports are equally wide here.
//
// Addresses are those of a bit, counted without parity; the lowest bits of ADA enable a byte of nine bits each. CEA
// enables a write, CEB a read into the output latch. READ_MODE 1, the output register, is not modelled.
//
// What is read at the clock at which it is written is not defined; here it is garbage, so that whoever
// relies on it is found out.
module SDPX9B #(
    parameter [0:0] READ_MODE = 0, parameter BIT_WIDTH_0 = 36, parameter BIT_WIDTH_1 = 36,
    parameter [2:0] BLK_SEL_0 = 0, parameter [2:0] BLK_SEL_1 = 0, parameter RESET_MODE = "SYNC"
) (
    input CLKA, CEA, RESETA, CLKB, CEB, RESETB, OCE,
    input [2:0] BLKSELA, BLKSELB, input [13:0] ADA, ADB, input [35:0] DI, output [35:0] DO
);
    localparam LOW = BIT_WIDTH_0 == 36 ? 5 : BIT_WIDTH_0 == 18 ? 4 : 3;
`ifdef FORMAL
    // A proof uses four words only, those of which all bits of the number between the highest and the
    // lowest one are 0.
    localparam WORDS = 4;
    wire [1:0] wa = {ADA[13], ADA[LOW]}, ra = {ADB[13], ADB[LOW]};
`else
    localparam WORDS = 16384 >> LOW;
    wire [13 - LOW:0] wa = ADA[13:LOW], ra = ADB[13:LOW];
`endif
    reg [BIT_WIDTH_0 - 1:0] mem [0:WORDS - 1];
    wire [35:0] touched = !CEA || BLKSELA != BLK_SEL_0 ? 36'd0
        : BIT_WIDTH_0 == 9 ? 36'h1FF
        : {{9{ADA[3]}}, {9{ADA[2]}}, {9{ADA[1]}}, {9{ADA[0]}}};
    wire [BIT_WIDTH_0 - 1:0] which = touched[BIT_WIDTH_0 - 1:0], there = mem[ra];
    wire clash = ADA[13:LOW] == ADB[13:LOW] && which != 0;
    reg [BIT_WIDTH_1 - 1:0] latch = 0;

    always @(posedge CLKA)
        if (which != 0) mem[wa] <= (mem[wa] & ~which) | (DI[BIT_WIDTH_0 - 1:0] & which);
    always @(posedge CLKB)
        if (RESETB) latch <= 0;
        else if (CEB && BLKSELB == BLK_SEL_1) latch <= clash ? ~there : there;
    assign DO = {36'd0, latch};
endmodule
