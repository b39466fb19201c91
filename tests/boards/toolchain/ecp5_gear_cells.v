// Models of the cells of an ECP5's gear, written after Lattice FPGA-TN-02035 and the order in which the vendor's own
// models act; without delays but for a tap of the delay. All start with the edge after their reset has ended.
`timescale 1ps / 1ps

module ECLKSYNCB (input ECLKI, input STOP, output ECLKO);
  reg stands = 1;
  always @(negedge ECLKI) stands <= STOP;
  assign ECLKO = ECLKI & ~stands;
endmodule

// The first edge after the reset starts it, the second one raises the clock.
module CLKDIVF #(parameter DIV = "2.0") (input CLKI, input RST, output CDIVX);
  reg runs = 0, high = 0;
  assign CDIVX = high;
  always @(posedge CLKI or posedge RST)
    if (RST) begin runs <= 0; high <= 0; end
    else begin runs <= 1; high <= runs & ~high; end
endmodule

module DELAYG #(parameter DEL_MODE = "", parameter DEL_VALUE = 0) (input A, output Z);
  assign Z = A;
endmodule

// Samples at both edges; every second edge a group of four is held, and the slow clock takes it.
module IDDRX2F (input D, input ECLK, input SCLK, input RST, output Q0, output Q1, output Q2, output Q3);
  reg rise = 0, fall = 0, runs = 0, turn = 0, takes = 0;
  reg [3:0] row = 0, held = 0, given = 0;   // the oldest in bit 0
  assign {Q3, Q2, Q1, Q0} = given;
  always @(negedge ECLK) fall <= D;
  always @(posedge ECLK or posedge RST)
    if (RST) begin runs <= 0; turn <= 0; takes <= 0; end
    else begin
      runs <= 1;
      turn <= runs & ~turn;
      takes <= turn;
    end
  always @(posedge ECLK) begin
    rise <= D;
    row <= {fall, rise, row[3:2]};
    if (takes) held <= row;
  end
  always @(posedge SCLK) given <= held;
endmodule
