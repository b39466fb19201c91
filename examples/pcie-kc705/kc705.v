// HYPERMON on an AMD KC705: 16 nodes at the FMC HPC connector, the 7-series PCIe block in between board and slot.
// The ports of module hypermon have the block's names; the block's other inputs are constants, as AMD PG054 states them
// for a core without the feature.

module kc705 (
    input clk200_p, input clk200_n,
    input pcie_clk_p, input pcie_clk_n, input pcie_rst_n,
    input pcie_rx_p, input pcie_rx_n, output pcie_tx_p, output pcie_tx_n,
    input [63:0] data, input [15:0] strobe,
    output led
);
    wire capture_clk, locked, pcie_clk, user_clk_out;
    wire user_reset_out;
    wire user_lnk_up;
    wire [63:0] m_axis_rx_tdata;
    wire [7:0] m_axis_rx_tkeep;
    wire m_axis_rx_tlast;
    wire [21:0] m_axis_rx_tuser;
    wire m_axis_rx_tvalid;
    wire m_axis_rx_tready;
    wire rx_np_ok;
    wire rx_np_req;
    wire [63:0] s_axis_tx_tdata;
    wire [7:0] s_axis_tx_tkeep;
    wire s_axis_tx_tlast;
    wire [3:0] s_axis_tx_tuser;
    wire s_axis_tx_tvalid;
    wire s_axis_tx_tready;
    wire [5:0] tx_buf_av;
    wire tx_cfg_gnt;
    wire [7:0] cfg_bus_number;
    wire [4:0] cfg_device_number;
    wire [2:0] cfg_function_number;
    wire [15:0] cfg_command;
    wire [15:0] cfg_dcommand;
    wire [1:0] cfg_pmcsr_powerstate;
    wire cfg_received_func_lvl_rst;
    wire cfg_to_turnoff;
    wire cfg_turnoff_ok;
    wire cfg_interrupt;
    wire cfg_interrupt_rdy;
    wire cfg_interrupt_assert;
    wire [7:0] cfg_interrupt_di;
    wire cfg_interrupt_msienable;

    capture_clock capture_clock (.clk_in1_p(clk200_p), .clk_in1_n(clk200_n), .clk_out1(capture_clk), .locked(locked));
    IBUFDS_GTE2 reference (.I(pcie_clk_p), .IB(pcie_clk_n), .CEB(1'b0), .O(pcie_clk));

    hypermon board (
        .clk(capture_clk), .rst(~locked), .data(data), .strobe(strobe), .running(led),
        .user_clk_out(user_clk_out), .user_reset_out(user_reset_out), .user_lnk_up(user_lnk_up),
        .m_axis_rx_tdata(m_axis_rx_tdata), .m_axis_rx_tkeep(m_axis_rx_tkeep), .m_axis_rx_tlast(m_axis_rx_tlast),
        .m_axis_rx_tuser(m_axis_rx_tuser), .m_axis_rx_tvalid(m_axis_rx_tvalid), .m_axis_rx_tready(m_axis_rx_tready),
        .rx_np_ok(rx_np_ok), .rx_np_req(rx_np_req), .s_axis_tx_tdata(s_axis_tx_tdata),
        .s_axis_tx_tkeep(s_axis_tx_tkeep), .s_axis_tx_tlast(s_axis_tx_tlast), .s_axis_tx_tuser(s_axis_tx_tuser),
        .s_axis_tx_tvalid(s_axis_tx_tvalid), .s_axis_tx_tready(s_axis_tx_tready), .tx_buf_av(tx_buf_av),
        .tx_cfg_gnt(tx_cfg_gnt), .cfg_bus_number(cfg_bus_number), .cfg_device_number(cfg_device_number),
        .cfg_function_number(cfg_function_number), .cfg_command(cfg_command), .cfg_dcommand(cfg_dcommand),
        .cfg_pmcsr_powerstate(cfg_pmcsr_powerstate), .cfg_received_func_lvl_rst(cfg_received_func_lvl_rst),
        .cfg_to_turnoff(cfg_to_turnoff), .cfg_turnoff_ok(cfg_turnoff_ok), .cfg_interrupt(cfg_interrupt),
        .cfg_interrupt_rdy(cfg_interrupt_rdy), .cfg_interrupt_assert(cfg_interrupt_assert),
        .cfg_interrupt_di(cfg_interrupt_di), .cfg_interrupt_msienable(cfg_interrupt_msienable)
    );

    pcie_block block (
        .sys_clk(pcie_clk), .sys_rst_n(pcie_rst_n),
        .pci_exp_rxp(pcie_rx_p), .pci_exp_rxn(pcie_rx_n), .pci_exp_txp(pcie_tx_p), .pci_exp_txn(pcie_tx_n),
        .user_clk_out(user_clk_out), .user_reset_out(user_reset_out), .user_lnk_up(user_lnk_up),
        .m_axis_rx_tdata(m_axis_rx_tdata), .m_axis_rx_tkeep(m_axis_rx_tkeep), .m_axis_rx_tlast(m_axis_rx_tlast),
        .m_axis_rx_tuser(m_axis_rx_tuser), .m_axis_rx_tvalid(m_axis_rx_tvalid), .m_axis_rx_tready(m_axis_rx_tready),
        .rx_np_ok(rx_np_ok), .rx_np_req(rx_np_req), .s_axis_tx_tdata(s_axis_tx_tdata),
        .s_axis_tx_tkeep(s_axis_tx_tkeep), .s_axis_tx_tlast(s_axis_tx_tlast), .s_axis_tx_tuser(s_axis_tx_tuser),
        .s_axis_tx_tvalid(s_axis_tx_tvalid), .s_axis_tx_tready(s_axis_tx_tready), .tx_buf_av(tx_buf_av),
        .tx_cfg_gnt(tx_cfg_gnt), .cfg_bus_number(cfg_bus_number), .cfg_device_number(cfg_device_number),
        .cfg_function_number(cfg_function_number), .cfg_command(cfg_command), .cfg_dcommand(cfg_dcommand),
        .cfg_pmcsr_powerstate(cfg_pmcsr_powerstate), .cfg_received_func_lvl_rst(cfg_received_func_lvl_rst),
        .cfg_to_turnoff(cfg_to_turnoff), .cfg_turnoff_ok(cfg_turnoff_ok), .cfg_interrupt(cfg_interrupt),
        .cfg_interrupt_rdy(cfg_interrupt_rdy), .cfg_interrupt_assert(cfg_interrupt_assert),
        .cfg_interrupt_di(cfg_interrupt_di), .cfg_interrupt_msienable(cfg_interrupt_msienable),
        .fc_sel(3'd0), .cfg_trn_pending(1'b0), .cfg_pm_halt_aspm_l0s(1'b0), .cfg_pm_halt_aspm_l1(1'b0),
        .cfg_pm_force_state_en(1'b0), .cfg_pm_force_state(2'd0), .cfg_pm_wake(1'b0), .cfg_dsn(64'd0),
        .cfg_interrupt_stat(1'b0), .cfg_pciecap_interrupt_msgnum(5'd0)
    );
endmodule
