// The ECP5's multiplier of 18 by 18 bits without registers, after Lattice FPGA-TN-02205, "ECP5 and ECP5-5G sysDSP Usage
// Guide": MULT18X18D, whose pins are vectors here. An operand is signed if its SIGNED is high. With SOURCE high an
// operand comes from the multiplier beside it, which is not modelled: the product is then inverted, so that whoever
// relies on it is found out.
module MULT18(input [17:0] A, B, input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB, output [35:0] P);
  wire signed [37:0] a = $signed({SIGNEDA & A[17], A}), b = $signed({SIGNEDB & B[17], B});
  wire signed [37:0] product = a * b;
  assign P = product[35:0] ^ {36{SOURCEA | SOURCEB}};
endmodule
