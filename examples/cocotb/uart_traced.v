// A UART transmitter that tells a HYPERMON board what it does: nibble 1 when a byte begins, 2 when it is out.
//
// The board is module `hypermon` with one node, as `make verilog ARGS="--nodes 1"` writes it. Its host bus and its
// stream go to the top unchanged: a bench drives them, and in a system they go to your bus and your DMA.

module uart_traced (
  input clk, input rst, input start, input [7:0] value, output tx, output busy,
  input pbx_req, input pbx_write, input [12:0] pbx_addr, input [31:0] pbx_wdata,
  output pbx_ack, output [31:0] pbx_rdata,
  output stream_valid, input stream_ready, output [127:0] stream_data, output stream_last, output running);

  // The design: one start bit, eight data bits, one stop bit, 16 clocks each.
  reg [9:0] bits = 10'h3ff;
  reg [7:0] left = 0;
  assign tx = bits[0];
  assign busy = left != 0;
  always @(posedge clk)
    if (start && !busy) begin
      bits <= {1'b1, value, 1'b0};
      left <= 160;
    end else if (busy) begin
      left <= left - 1;
      if (left[3:0] == 1) bits <= {1'b1, bits[9:1]};
    end

  // Its port: one write per nibble, which toggles the strobe.
  reg was_busy = 0, strobe = 0;
  reg [3:0] nibble = 0;
  always @(posedge clk) begin
    was_busy <= busy;
    if (busy != was_busy) {strobe, nibble} <= {~strobe, busy ? 4'd1 : 4'd2};
  end

  hypermon board (
    .clk(clk), .rst(rst), .strobe(strobe), .data(nibble), .advance(32'd0), .quiet(), .horizon(),
    .pbx_req(pbx_req), .pbx_more(1'b0), .pbx_write(pbx_write), .pbx_addr(pbx_addr), .pbx_wdata(pbx_wdata),
    .pbx_ack(pbx_ack), .pbx_rdata(pbx_rdata), .stream_valid(stream_valid), .stream_ready(stream_ready),
    .stream_data(stream_data), .stream_last(stream_last), .running(running));
endmodule
