// DP16KD, the ECP5's block RAM of 18 kbit with two ports: a model for simulation and proofs, after
// Lattice FPGA-TN-02204, "ECP5 and ECP5-5G Memory Usage Guide". Ports and parameters are those of Yosys's
// lattice/cells_bb_ecp5.v; widths, address bits, byte enables and "no change" on a write are also in its
// lattice/brams_16kd.txt and brams_map_16kd.v, after which Yosys itself uses the primitive.
//
// What is modelled: data widths of 18, 9, 4, 2 and 1 bit, a different one on each port if need be. The
// address is that of a bit, so its lowest 4, 3, 2, 1 or 0 bits do not count. A byte has nine bits;
// the widths below 9 see the eight lower ones. At 18 bits ADx0 and ADx1 enable the lower and the
// upper byte of a write. CEx enables the port, OCEx its output register, which is there with
// REGMODE "OUTREG". With WRITEMODE "NORMAL" a write leaves the output latch as it is. RSTx clears
// latch and register at the clock. CSx must be 0 (CSDECODE's default).
//
// What a port reads at the clock at which the other one writes the same bits is not defined; here
// it is garbage, so that whoever relies on it is found out.
module DP16KD #(
    parameter DATA_WIDTH_A = 18, parameter DATA_WIDTH_B = 18,
    parameter REGMODE_A = "NOREG", parameter REGMODE_B = "NOREG",
    parameter RESETMODE = "SYNC", parameter ASYNC_RESET_RELEASE = "SYNC",
    parameter CSDECODE_A = "0b000", parameter CSDECODE_B = "0b000",
    parameter WRITEMODE_A = "NORMAL", parameter WRITEMODE_B = "NORMAL", parameter GSR = "ENABLED"
) (
    input DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9,
    input DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0,
    input ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0,
    input CEA, OCEA, CLKA, WEA, RSTA, CSA2, CSA1, CSA0,
    input DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9,
    input DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0,
    input ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0,
    input CEB, OCEB, CLKB, WEB, RSTB, CSB2, CSB1, CSB0,
    output DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9,
    output DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0,
    output DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9,
    output DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0
);
`ifdef FORMAL
    // A proof uses four rows only, those in which all bits of the address between the highest and the
    // lowest one are 0.
    localparam ROWS = 4;
    `define ROW(ad) {ad[13], ad[4]}
`else
    localparam ROWS = 1024;
    `define ROW(ad) ad[13:4]
`endif
    reg [17:0] mem [0:ROWS - 1];

    wire [13:0] ada = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0};
    wire [13:0] adb = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0};
    wire [17:0] dia = {DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9,
                       DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0};
    wire [17:0] dib = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9,
                       DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0};
    wire ena = CEA && {CSA2, CSA1, CSA0} == 3'b000;
    wire enb = CEB && {CSB2, CSB1, CSB0} == 3'b000;

    // Lowest bit of the row that a word of a narrow width has.
    function [4:0] place(input integer width, input [13:0] ad);
        place = (ad[3] ? 5'd9 : 5'd0) + (width == 4 ? {2'b00, ad[2], 2'b00} : width == 2 ? {2'b00, ad[2:1], 1'b0} :
                                         width == 1 ? {2'b00, ad[2:0]} : 5'd0);
    endfunction
    function [17:0] word(input integer width);
        word = width == 18 ? 18'h3ffff : width == 9 ? 18'h001ff : width == 4 ? 18'h0000f : width == 2 ? 18'h00003 : 18'h00001;
    endfunction
    // Bits of the row that a write touches, that a read sees.
    function [17:0] writes(input integer width, input [13:0] ad);
        writes = width == 18 ? {{9{ad[1]}}, {9{ad[0]}}} : word(width) << place(width, ad);
    endfunction
    function [17:0] reads(input integer width, input [13:0] ad);
        reads = width == 18 ? 18'h3ffff : word(width) << place(width, ad);
    endfunction
    function [17:0] placed(input integer width, input [13:0] ad, input [17:0] data);
        placed = width == 18 ? data : (data & word(width)) << place(width, ad);
    endfunction
    function [17:0] part(input integer width, input [13:0] ad, input [17:0] row);
        part = width == 18 ? row : (row >> place(width, ad)) & word(width);
    endfunction

    wire [17:0] touched_a = ena && WEA ? writes(DATA_WIDTH_A, ada) : 18'd0;
    wire [17:0] touched_b = enb && WEB ? writes(DATA_WIDTH_B, adb) : 18'd0;
    wire [17:0] row_a = mem[`ROW(ada)], row_b = mem[`ROW(adb)];
    wire same = ada[13:4] == adb[13:4];
    wire clash_a = same && (touched_b & reads(DATA_WIDTH_A, ada)) != 0;
    wire clash_b = same && (touched_a & reads(DATA_WIDTH_B, adb)) != 0;
    reg [17:0] latch_a = 0, latch_b = 0, out_a = 0, out_b = 0;

    always @(posedge CLKA) begin
        if (touched_a != 0)
            mem[`ROW(ada)] <= (row_a & ~touched_a) | (placed(DATA_WIDTH_A, ada, dia) & touched_a);
        if (RSTA) latch_a <= 0;
        else if (ena && !WEA) latch_a <= part(DATA_WIDTH_A, ada, clash_a ? ~row_a : row_a);
        if (RSTA) out_a <= 0;
        else if (OCEA) out_a <= latch_a;
    end
    always @(posedge CLKB) begin
        if (touched_b != 0)
            mem[`ROW(adb)] <= (row_b & ~touched_b) | (placed(DATA_WIDTH_B, adb, dib) & touched_b);
        if (RSTB) latch_b <= 0;
        else if (enb && !WEB) latch_b <= part(DATA_WIDTH_B, adb, clash_b ? ~row_b : row_b);
        if (RSTB) out_b <= 0;
        else if (OCEB) out_b <= latch_b;
    end
    assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9,
            DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0} = REGMODE_A == "OUTREG" ? out_a : latch_a;
    assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9,
            DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0} = REGMODE_B == "OUTREG" ? out_b : latch_b;
endmodule
