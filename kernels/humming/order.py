"""order.py - how upstream's kernels sum: slices, K-warps, flushes, powers of two put back late.

Sources, under include/humming of upstream's package, read from the package where versions differ:
scheduler.cuh (the constructor of class Scheduler, get_streamk_next_block, map_mn_block),
epilogue/gmem_writer.cuh (write_legacy, write_tma), epilogue/smem_reducer.cuh (reduce),
arith/exp_offset.cuh, arith/mainloop_arith.cuh (may_apply_as_and_bs_on_mma_c and ..._wgmma_c),
arith/epilogue_arith.cuh (may_apply_on_smem_write).
"""

import math
import os
import re


GROUP, BLOCK = 1, 2  # hum_scale_type


def divide_up(a, b):
    return -(-a // b)


class Format:
    """A format of the contract: base x 10^7 + signed x 10^6 + bits x 10^4 + exponent x 100 + mantissa."""

    def __init__(self, number):
        self.is_float = number // 10000000 == 2
        self.bits, self.exponent = number // 10000 % 100, number // 100 % 100
        self.mantissa = number % 100

    def half(self):
        return 1 << (self.exponent - 1)

    def is_f16(self):
        return (self.bits, self.exponent) == (16, 5)


def place(path, name):
    return os.path.join(path, "humming", "include", "humming", name + ".cuh")


def read(path, name):
    with open(place(path, name), encoding="utf-8") as file:
        return file.read()


class Order:
    """Slices of output tiles; slice 0 holds the last k, slices are added in this order."""

    def __init__(self, path, sms):
        text, reducer = read(path, "scheduler"), read(path, "epilogue/smem_reducer")
        self.sms = sms
        self.aligns_to_stages = "ct_gcd" in text  # runs are whole rounds of the stages
        self.rasters = "map_mn_block" in text
        self.rasters_experts = "|| !kIsDenseGemm" not in text
        self.pads_blocks = "kStreamKBlocks" in text  # tiles start on whole words of input scales
        most = re.search(r"kMaxSlices = (\d+)", text)
        self.most_slices = int(most[1]) if most else 0
        most = re.search(r"use_direct_reduce = group_num_warps <= (\d+)", reducer)
        self.most_warps_in_order = int(most[1]) if most else 1
        self.has_native = os.path.exists(place(path, "datatype/dequant_native"))

    @staticmethod
    def word(layer, tuning):
        """K blocks of the largest scale group."""
        largest = max(layer["weight_scale_group_size"], layer["input_scale_group_size"], 1)
        return max(largest // tuning["block_k"], 1)

    def run(self, layer, tuning, shared, k_blocks, ctas):
        """K blocks that one worker owns."""
        word = self.word(layer, tuning)
        run = divide_up(shared * k_blocks, ctas)
        if self.most_slices:
            run = max(run, divide_up(k_blocks - 1, self.most_slices - 1))
        align = math.lcm(word, max(tuning["num_stages"], 1)) if self.aligns_to_stages else word
        return divide_up(run, align) * align

    def index(self, tuning, dense, m_blocks, n_blocks, m_id, n_id):
        """The place of a tile in the order in which tiles are dealt out (map_mn_block inverted)."""
        group = tuning["raster_group_m"]
        if group <= 1 or not self.rasters or not (dense or self.rasters_experts):
            return m_id * n_blocks + n_id
        first = m_id // group * group
        height = min(m_blocks - first, group)
        return first * n_blocks + n_id * height + (m_id - first)

    def slices(self, layer, tuning, dense, m, row, col):
        """With experts m and row count in row tiles of all experts one after the other."""
        cast_a, cast_b = max(tuning["multi_cast_size_a"], 1), max(tuning["multi_cast_size_b"], 1)
        n_blocks = layer["shape_n"] // tuning["block_n"] // cast_a
        k_blocks, block_k = layer["shape_k"] // tuning["block_k"], tuning["block_k"]
        m_blocks = divide_up(m, tuning["block_m"] * cast_b)
        whole = [[0, layer["shape_k"]]]
        if not tuning["use_stream_k"]:
            return whole
        ctas = (tuning["num_sms"] or self.sms) * tuning["num_ctas_per_sm"] // (cast_a * cast_b)
        tiles = m_blocks * n_blocks
        shared = tiles
        if tiles > ctas:
            shared = tiles % ctas
            if shared and shared * 10 <= ctas:
                shared += ctas
        index = self.index(
            tuning,
            dense,
            m_blocks,
            n_blocks,
            row // tuning["block_m"] // cast_b,
            col // tuning["block_n"] // cast_a,
        )
        if index < tiles - shared:
            return whole
        word = self.word(layer, tuning)
        padded = divide_up(k_blocks, word) * word if self.pads_blocks else k_blocks
        run = self.run(layer, tuning, shared, padded, ctas)
        begin = (index - (tiles - shared)) * padded
        cuts = [b for b in range(k_blocks) if b == 0 or (begin + b) % run == 0] + [k_blocks]
        pairs = [[a * block_k, b * block_k] for a, b in zip(cuts, cuts[1:])]
        return pairs[::-1]

    @staticmethod
    def ordered(slices, use_tma_c):
        """Slice 0 comes first. Up to three wait for each other; more of them, and bulk copies, add
        atomically as they come, so that the last of two is known."""
        return slices <= (2 if use_tma_c else 3)

    def warps_in_order(self, tuning):
        return tuning["block_k"] // tuning["warp_k"] <= self.most_warps_in_order

    @staticmethod
    def flush_k(layer, tuning, is_fused):
        """8-bit activations: scales are applied on accumulators at the end of each group and of
        warp_k. With 16-bit ones they are in the operand."""
        groups = [layer["input_scale_group_size"]]
        if layer["weight_scale_type"] in (GROUP, BLOCK) and not is_fused:
            groups.append(layer["weight_scale_group_size"])
        groups = [g for g in groups if g]
        if Format(layer["a_dtype"]).bits == 16 or not groups:
            return 0
        return min(groups + [tuning["warp_k"]])

    @staticmethod
    def dequant_shift(to, of, has_zero_point=False):
        """get_dtype_dequant_exp_offset: codes moved into another format's bits stand for 2^-this
        times their values."""
        if not to.is_float or not to.exponent or to.bits <= of.bits:
            return 0
        if to.is_f16() and (of.bits, of.exponent) == (8, 8):
            return 0
        subnormal = to.half() - 2 + to.mantissa
        if of.is_float and of.exponent:
            return to.half() - of.half()
        if of.is_float:
            return 0 if to.bits == 16 else subnormal
        if to.bits != 16:
            return subnormal
        return subnormal if not to.is_f16() and of.bits > (6 if has_zero_point else 7) else 0

    def takes_natively(self, layer, bs):
        """sm_89 and later convert e4m3 and e5m2 to f16 by an instruction, without power of two."""
        native = (bs.exponent, bs.mantissa) in ((4, 3), (5, 2))
        return self.has_native and native and layer["weight_scale_type"] == GROUP

    def shifts(self, layer, use_f16_accum, is_fused):
        """(operand_shift, flush_shift, output_shift): get_mainloop_exp_offset and
        get_epilogue_exp_offset. The fused shift of e8m0 scales is not counted here."""
        a, b, bs = (Format(layer[f"{x}_dtype"]) for x in ("a", "b", "bs"))
        on_groups = layer["weight_scale_type"] in (GROUP, BLOCK)
        if is_fused or not a.is_float:
            return 0, 0, 0
        has_zero_point = bool(layer["has_zero_point"])
        total = self.dequant_shift(a, b, has_zero_point)
        if a.bits < 16:
            by_flush = min(total, 2) if use_f16_accum and on_groups else 0
            return total, by_flush, total - by_flush
        on_scale = 0
        if bs.bits == 8 and on_groups and not self.takes_natively(layer, bs):
            on_scale = self.dequant_shift(a, bs)
        total += on_scale
        most = a.half() - 1
        if a.is_f16() or b.bits <= (6 if has_zero_point else 7):
            most += 1 - b.bits
        by_weight, by_scale = min(most, total), 0
        if not a.is_f16() and on_scale:
            by_scale = min(total - by_weight, on_scale)
            room = on_scale + 127 - bs.half()
            if self.has_native and b.is_float and not has_zero_point and room > by_scale:
                by_weight, by_scale = 0, min(total, room)
        left = total - by_weight - by_scale
        return left, 0, left
