// What Gowin's cells do that Yosys has no model of, or that are not cells of their own to its tools.

// A lookup table in an adder. The carry is chosen by the whole table and made by its lowest four bits: apycula,
// doc/alu.md.
module ALU_LUT #(parameter [15:0] INIT = 0) (output SUM, COUT, input A, B, C, D, CIN);
  wire chosen = INIT[{D, C, B, A}];
  assign SUM = chosen ^ CIN;
  assign COUT = chosen ? CIN : INIT[{2'b00, B, A}];
endmodule

// The flip-flop of an I/O cell, from the pad.
module IREG (output reg Q, input D, CLK);
  initial Q = 0;
  always @(posedge CLK) Q <= D;
endmodule

// A block RAM that one side writes and the other reads, its output not registered: Gowin UG285, "Gowin BSRAM & SSRAM User
// Guide", SDPB and SDPX9B. Below the word's address are the enables of its bytes.
module SDP #(parameter BYTES = 4, parameter LOW = 5) (
    output reg [9 * BYTES - 1:0] DO, input [9 * BYTES - 1:0] DI, input [13:0] ADA, ADB,
    input CLKA, CEA, WREA, CLKB, CEB, RESETB, input [2:0] BLKSEL);
  reg [9 * BYTES - 1:0] memory [0:(1 << (14 - LOW)) - 1];
  integer i;
  initial begin
    DO = 0;
    for (i = 0; i < 1 << (14 - LOW); i = i + 1) memory[i] = 0;
  end
  always @(posedge CLKA)
    if (CEA & WREA & BLKSEL == 0)
      for (i = 0; i < BYTES; i = i + 1)
        if (ADA[i]) memory[ADA[13:LOW]][9 * i +: 9] <= DI[9 * i +: 9];
  always @(posedge CLKB)
    if (RESETB) DO <= 0;
    else if (CEB) DO <= memory[ADB[13:LOW]];
endmodule

// 512 words of 36 bits.
module SDP36 (output [35:0] DO, input [35:0] DI, input [13:0] ADA, ADB, input CLKA, CEA, WREA, CLKB, CEB, WREB, RESETB,
              input [2:0] BLKSEL);
  SDP #(.BYTES(4), .LOW(5)) ram (.DO(DO), .DI(DI), .ADA(ADA), .ADB(ADB), .CLKA(CLKA), .CEA(CEA), .WREA(WREA),
    .CLKB(CLKB), .CEB(CEB), .RESETB(RESETB), .BLKSEL(BLKSEL));
endmodule

// 1024 words of 18 bits: the second port does not write.
module SDP18 (output [17:0] DO, input [17:0] DI, input [13:0] ADA, ADB, input CLKA, CEA, WREA, CLKB, CEB, WREB, RESETB,
              input [2:0] BLKSEL);
  SDP #(.BYTES(2), .LOW(4)) ram (.DO(DO), .DI(DI), .ADA(ADA), .ADB(ADB), .CLKA(CLKA), .CEA(CEA), .WREA(WREA),
    .CLKB(CLKB), .CEB(CEB), .RESETB(RESETB), .BLKSEL(BLKSEL));
endmodule
