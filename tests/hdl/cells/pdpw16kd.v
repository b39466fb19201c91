// PDPW16KD, the ECP5's block RAM of 18 kbit with a port for writing and one for reading, both 36 bits
// wide: a model for simulation and proofs, after Lattice FPGA-TN-02204, "ECP5 and ECP5-5G Memory Usage
// Guide". Ports and parameters are those of Yosys's lattice/cells_bb_ecp5.v.
//
// ADW is the number of a word; ADR that of a bit, so its lowest five do not count. BEx enables a byte of
// nine bits, CEW a write, CER a read into the output latch, OCER the output register, which is there
// with REGMODE "OUTREG". RST clears latch and register at the clock. CSx must be 0 (CSDECODE's default).
//
// What is read at the clock at which it is written is not defined; here it is garbage, so that whoever
// relies on it is found out.
module PDPW16KD #(
    parameter DATA_WIDTH_W = 36, parameter DATA_WIDTH_R = 36, parameter REGMODE = "NOREG",
    parameter RESETMODE = "SYNC", parameter ASYNC_RESET_RELEASE = "SYNC",
    parameter CSDECODE_W = "0b000", parameter CSDECODE_R = "0b000", parameter GSR = "ENABLED"
) (
    input DI35, DI34, DI33, DI32, DI31, DI30, DI29, DI28, DI27, DI26, DI25, DI24, DI23, DI22, DI21, DI20, DI19, DI18,
    input DI17, DI16, DI15, DI14, DI13, DI12, DI11, DI10, DI9, DI8, DI7, DI6, DI5, DI4, DI3, DI2, DI1, DI0,
    input ADW8, ADW7, ADW6, ADW5, ADW4, ADW3, ADW2, ADW1, ADW0, BE3, BE2, BE1, BE0, CEW, CLKW, CSW2, CSW1, CSW0,
    input ADR13, ADR12, ADR11, ADR10, ADR9, ADR8, ADR7, ADR6, ADR5, ADR4, ADR3, ADR2, ADR1, ADR0,
    input CER, OCER, CLKR, CSR2, CSR1, CSR0, RST,
    output DO35, DO34, DO33, DO32, DO31, DO30, DO29, DO28, DO27, DO26, DO25, DO24, DO23, DO22, DO21, DO20, DO19, DO18,
    output DO17, DO16, DO15, DO14, DO13, DO12, DO11, DO10, DO9, DO8, DO7, DO6, DO5, DO4, DO3, DO2, DO1, DO0
);
`ifdef FORMAL
    // A proof uses four words only, those of which all bits of the number between the highest and the
    // lowest one are 0.
    localparam WORDS = 4;
    `define WORD(a) {a[8], a[0]}
`else
    localparam WORDS = 512;
    `define WORD(a) a
`endif
    reg [35:0] mem [0:WORDS - 1];
    wire [35:0] di = {DI35, DI34, DI33, DI32, DI31, DI30, DI29, DI28, DI27, DI26, DI25, DI24, DI23, DI22, DI21, DI20,
                      DI19, DI18, DI17, DI16, DI15, DI14, DI13, DI12, DI11, DI10, DI9, DI8, DI7, DI6, DI5, DI4, DI3,
                      DI2, DI1, DI0};
    wire [8:0] adw = {ADW8, ADW7, ADW6, ADW5, ADW4, ADW3, ADW2, ADW1, ADW0};
    wire [8:0] adr = {ADR13, ADR12, ADR11, ADR10, ADR9, ADR8, ADR7, ADR6, ADR5};
    wire [35:0] touched = CEW && {CSW2, CSW1, CSW0} == 3'b000 ? {{9{BE3}}, {9{BE2}}, {9{BE1}}, {9{BE0}}} : 36'd0;
    wire [35:0] old = mem[`WORD(adw)], there = mem[`WORD(adr)];
    wire clash = adw == adr && touched != 0;
    reg [35:0] latch = 0, out = 0;

    always @(posedge CLKW)
        if (touched != 0) mem[`WORD(adw)] <= (old & ~touched) | (di & touched);
    always @(posedge CLKR) begin
        if (RST) latch <= 0;
        else if (CER && {CSR2, CSR1, CSR0} == 3'b000) latch <= clash ? ~there : there;
        if (RST) out <= 0;
        else if (OCER) out <= latch;
    end
    assign {DO35, DO34, DO33, DO32, DO31, DO30, DO29, DO28, DO27, DO26, DO25, DO24, DO23, DO22, DO21, DO20, DO19,
            DO18, DO17, DO16, DO15, DO14, DO13, DO12, DO11, DO10, DO9, DO8, DO7, DO6, DO5, DO4, DO3, DO2, DO1,
            DO0} = REGMODE == "OUTREG" ? out : latch;
endmodule
