"""The phase-locked loops of each FPGA family.

Flow: pll, ecp5_pll, ecp5_gear, gowin_pll, ice40_pll, xilinx_pll
"""
