// Dynamic clock control of an ECP5, of which Yosys knows the ports alone: Lattice FPGA-TN-02200, "DCCA".
module DCCA(input CLKI, input CE, output CLKO);
  assign CLKO = CLKI & CE;
endmodule
