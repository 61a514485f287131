"""order.py - how upstream's scheduler cuts the K blocks of a dense product into slices.

Source: class Scheduler of upstream's scheduler.cuh (its constructor, get_streamk_next_block and
map_mn_block), read from the package itself where versions differ.
"""

import math
import os
import re


def divide_up(a, b):
    return -(-a // b)


class Order:
    """Slices of output tiles; slice 0 holds the last k, slices are added in this order."""

    def __init__(self, path, sms):
        name = os.path.join(path, "humming", "include", "humming", "scheduler.cuh")
        with open(name, encoding="utf-8") as file:
            text = file.read()
        self.sms = sms
        self.aligns_to_stages = "ct_gcd" in text  # runs are whole rounds of the stages
        self.rasters = "map_mn_block" in text
        self.pads_blocks = "kStreamKBlocks" in text  # tiles start on whole words of input scales
        most = re.search(r"kMaxSlices = (\d+)", text)
        self.most_slices = int(most[1]) if most else 0

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

    def index(self, tuning, m_blocks, n_blocks, m_id, n_id):
        """The place of a tile in the order in which tiles are dealt out (map_mn_block inverted)."""
        group = tuning["raster_group_m"]
        if group <= 1 or not self.rasters:
            return m_id * n_blocks + n_id
        first = m_id // group * group
        height = min(m_blocks - first, group)
        return first * n_blocks + n_id * height + (m_id - first)

    def slices(self, layer, tuning, m, row, col):
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
