// The board in a design of one's own, in plain Verilog. Node 0 is outside, at pins; node 1 is inside: a worker
// without a processor, whose jobs take longer and longer, and which tells of each by two stores to its port.
//
// Modules hypermon and hypermon_port are written by:
//     make verilog OUT=hypermon.v ARGS="--link bus --axi-bytes 4 --nodes 2"
//     make verilog OUT=hypermon_port.v ARGS="--onchip-port"
module soc (
    input         clk,
    input         rst,
    // A node's port: strobe in bit 4, nibble below.
    input  [4:0]  pins,
    // Wishbone of whoever sets the board up: a processor, a bridge, a test.
    input         wb_cyc, wb_stb, wb_we,
    input  [10:0] wb_adr,
    input  [3:0]  wb_sel,
    input  [31:0] wb_dat_w,
    output [31:0] wb_dat_r,
    output        wb_ack, wb_err,
    // The blocks, to whatever carries them away.
    output [31:0] axis_tdata,
    output [3:0]  axis_tkeep,
    output        axis_tvalid, axis_tlast,
    input         axis_tready
);
    localparam BEGINS = 4'd1, ENDS = 4'd2;

    wire       running, strobe, stored;
    wire [3:0] data;

    hypermon board (
        .clk(clk), .rst(rst), .running(running),
        .strobe({strobe, pins[4]}), .data({data, pins[3:0]}),
        .wb_clk(clk), .wb_cyc(wb_cyc), .wb_stb(wb_stb), .wb_we(wb_we), .wb_adr(wb_adr), .wb_sel(wb_sel),
        .wb_dat_w(wb_dat_w), .wb_dat_r(wb_dat_r), .wb_ack(wb_ack), .wb_err(wb_err),
        .axis_tdata(axis_tdata), .axis_tkeep(axis_tkeep), .axis_tvalid(axis_tvalid), .axis_tlast(axis_tlast),
        .axis_tready(axis_tready)
    );

    // Job n takes 50 (n + 1) clocks; there are as many between two jobs as the first one takes.
    reg        working = 0, tells = 0;
    reg [11:0] job = 50, left = 50;
    always @(posedge clk) begin
        if (stored) tells <= 0;
        if (rst | !running) begin
            working <= 0; tells <= 0; job <= 50; left <= 50;
        end else if (left != 1) begin
            left <= left - 1;
        end else begin
            working <= !working;
            tells <= 1;
            left <= working ? 50 : job;
            if (working) job <= job + 50;
        end
    end

    hypermon_port port (
        .clk(clk), .rst(rst), .strobe(strobe), .data(data),
        .wb_cyc(tells), .wb_stb(tells), .wb_we(1'b1), .wb_adr(1'b0), .wb_sel(4'b0001),
        .wb_dat_w({28'b0, working ? BEGINS : ENDS}), .wb_dat_r(), .wb_ack(stored), .wb_err()
    );
endmodule
