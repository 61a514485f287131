"""upstream_ops.py - quantizers, packing, inputs and weighted sums of the package `humming`.

Upstream's operations return new tensors; their bytes are copied to where the contract wants them.
What a version lacks is left out of the table, and refused by name.
"""

import torch

from recording import settle
from worker import UNSUPPORTED, Refusal, name_of, view

ACTIVATIONS = ["none", "silu", "gelu", "gelu_tanh", "relu2", "swiglu"]
FORMS = ["unary", "binary_split", "binary_interleaved"]
QUANT_MODES = [
    "none",
    "static_tensor",
    "dynamic_token",
    "dynamic_group",
    "static_tensor_dynamic_group",
    "dynamic_group_token",
]
PLAIN_TOKEN, PLAIN_GROUP = 2, 3
ROW_MAJOR, M_MAJOR, MX_PACKED = range(3)


class Operations:
    def __init__(self, memory):
        from humming import ops
        from humming.transform import process_fused_e8m0_scale

        self.memory, self.ops = memory, ops
        self.rows = 0  # of the inputs at hand
        self.fused_e8m0 = process_fused_e8m0_scale

    def calls(self):
        table = {
            "quant_weight": ("quant_weight", self.quant_weight),
            "dequant_weight": ("dequant_weight", self.dequant_weight),
            "pack": ("pack_weight", self.pack),
            "unpack": ("unpack_weight", self.unpack),
            "process_mxfp4": ("process_mxfp4_w4a8_weight", self.process_mxfp4),
            "moe_fused_mul_sum": ("moe_fused_mul_sum", self.moe_fused_mul_sum),
        }
        found = {name: call for name, (of, call) in table.items() if hasattr(self.ops, of)}
        if hasattr(self.ops, "process_input"):
            found |= {"process_input": self.process_input, "hadamard": self.hadamard_input}
        else:
            found |= {"process_input": self.quant_input, "hadamard": self.hadamard}
        return found

    def view(self, t):
        return view(self.memory, t)

    def put(self, *results):
        """The bytes of results to where they belong: all of them, or none if a size differs."""
        copies = []
        for place, tensor in results:
            if not place or not place[2] or tensor is None:
                continue
            target = self.memory.bytes(place[0], place[2])
            source = tensor.contiguous().view(-1).view(torch.uint8)
            if source.numel() != target.numel():
                raise Refusal(
                    UNSUPPORTED, f"upstream returns {source.numel()} bytes for {target.numel()}"
                )
            copies.append((target, source))
        for target, source in copies:
            target.copy_(source)
        settle()

    def unpadded(self, place, scale):
        """Rows of m-major scales are padded to four: what upstream's padding holds means nothing,
        so the bytes that are there stay."""
        if scale is None or not place or scale.dim() != 2 or list(scale.shape) != place[3:]:
            return scale
        rows = self.rows
        if rows >= scale.size(1):
            return scale
        kept = self.view(place).clone()
        kept[:, :rows] = scale.view(kept.dtype)[:, :rows]
        return kept

    # ---- weights ----

    def quant_weight(self, payload, tensors, target_dtype, group_size, has_scale, use_e8m0_scale,
                     has_zero_point, is_fp_zero_point, allow_negative_scale, rule):
        inputs = self.view(tensors["inputs"])
        codes, scale, zero = self.ops.quant_weight(
            inputs,
            source_dtype_str=name_of(tensors["inputs"][1]),
            target_dtype_str=name_of(target_dtype),
            group_size=group_size or inputs.size(-1),
            has_scale=bool(has_scale),
            use_e8m0_scale=bool(use_e8m0_scale),
            has_zero_point=bool(has_zero_point),
            is_fp_zero_point=bool(is_fp_zero_point),
            allow_negative_scale=bool(allow_negative_scale),
        )
        self.put(
            (tensors["codes"], codes),
            (tensors["scale"], scale if has_scale else None),
            (tensors["zero_point"], zero.to(torch.float32) if has_zero_point else None),
        )

    def dequant_weight(self, payload, tensors, source_dtype):
        made = self.ops.dequant_weight(
            self.view(tensors["codes"]),
            exponent_bits=source_dtype // 100 % 100,
            mantissa_bits=source_dtype % 100,
            is_signed=bool(source_dtype // 1000000 % 10),
        )
        self.put((tensors["outputs"], made))

    def pack(self, payload, tensors, bits):
        self.put((tensors["packed"], self.ops.pack_weight(self.view(tensors["codes"]), num_bits=bits)))

    def unpack(self, payload, tensors, bits):
        made = self.ops.unpack_weight(self.view(tensors["packed"]), num_bits=bits)
        self.put((tensors["codes"], made))

    def process_mxfp4(self, payload, tensors, a_dtype, range, per_row):
        """Through process_fused_e8m0_scale, which wants a layer: only what it reads of one."""
        from humming import dtypes
        from humming.config import WeightScale2Type

        weight, scale = self.view(tensors["weight"]), self.view(tensors["scale"])

        class Layer:
            num_experts = 0
            shape_n = weight.size(0)
            weight_scale_2_type = WeightScale2Type.CHANNEL if per_row else WeightScale2Type.TENSOR

        layer = Layer()
        layer.a_dtype = dtypes.DataType.from_str(name_of(a_dtype))
        if range:
            raise Refusal(UNSUPPORTED, "upstream has a fixed range")
        made, offsets, factor = self.fused_e8m0(layer, weight=weight.clone(), weight_scale=scale.clone())
        self.put(
            (tensors["weight"], made), (tensors["scale"], offsets), (tensors["factor"], factor)
        )

    # ---- activations ----

    def plain(self, request, modes):
        """Refuses what a version without process_input cannot say."""
        wants = {
            "an activation": request["activation"] != 0,
            "a row layout": request["layout"] != 0,
            f"quantization mode {QUANT_MODES[request['quant_mode']]}": request["quant_mode"] not in modes,
        }
        for what, wanted in wants.items():
            if wanted:
                raise Refusal(UNSUPPORTED, f"this version has no operation with {what}")

    def quant_input(self, payload, tensors, **request):
        self.plain(request, (0, PLAIN_TOKEN, PLAIN_GROUP))
        inputs, block = self.view(tensors["inputs"]), request["hadamard_block_size"]
        self.rows = inputs.size(0) if request["scale_layout"] == M_MAJOR else 1 << 62
        if request["quant_mode"] == 0:
            if not block:
                raise Refusal(UNSUPPORTED, "upstream has nothing to do here")
            return self.put((tensors["outputs"], self.ops.hadamard_transform(inputs, block)))
        group = request["quant_group_size"] if request["quant_mode"] == PLAIN_GROUP else 0
        options = {
            "group_size": group or None,
            "m_major_scale": request["scale_layout"] != ROW_MAJOR,
            "scale_dtype": name_of(request["group_scale_dtype"]) if group else "float32",
        }
        if block:
            made, scale = self.ops.hadamard_quant_input(
                inputs, block, name_of(request["quant_dtype"]), **options
            )
        else:
            made, scale = self.ops.quant_input(inputs, name_of(request["quant_dtype"]), **options)
        scales = "group_scales" if group else "token_scales"
        self.put(
            (tensors["outputs"], made), (tensors[scales], self.unpadded(tensors[scales], scale))
        )

    def process_input(self, payload, tensors, **request):
        if request["activation"]:
            raise Refusal(UNSUPPORTED, "upstream takes the source text of an activation, not its name")
        if request["layout"]:
            raise Refusal(UNSUPPORTED, "row layouts differ from the contract's")
        mode = QUANT_MODES[request["quant_mode"]]
        m_major = request["scale_layout"] == M_MAJOR
        self.rows = self.view(tensors["inputs"]).size(0) if m_major else 1 << 62
        made, group_scales, token_scales = self.ops.process_input(
            self.view(tensors["inputs"]),
            quant_mode=mode,
            quant_dtype=name_of(request["quant_dtype"]),
            quant_group_size=request["quant_group_size"] or None,
            group_scale_dtype=name_of(request["group_scale_dtype"]),
            token_scales=self.view(tensors["static_scales"]) if mode.startswith("static") else None,
            hadamard_block_size=request["hadamard_block_size"] or None,
            use_m_major_input_scale=request["scale_layout"] != ROW_MAJOR,
        )
        token_scales = None if mode.startswith("static") else token_scales
        self.put(
            (tensors["outputs"], made),
            (tensors["group_scales"], self.unpadded(tensors["group_scales"], group_scales)),
            (tensors["token_scales"], token_scales),
        )

    def hadamard(self, payload, tensors, block_size):
        made = self.ops.hadamard_transform(self.view(tensors["inputs"]), block_size)
        self.put((tensors["outputs"], made))

    def hadamard_input(self, payload, tensors, block_size):
        made, _, _ = self.ops.process_input(
            self.view(tensors["inputs"]), quant_mode="none", hadamard_block_size=block_size
        )
        self.put((tensors["outputs"], made))

    def moe_fused_mul_sum(self, payload, tensors):
        found = {name: self.view(t) for name, t in tensors.items()}
        if found["topk_ids"] is not None and found["expert_map"] is None:
            raise Refusal(UNSUPPORTED, "upstream reads ids only together with an expert map")
        made = self.ops.moe_fused_mul_sum(
            found["inputs"],
            found["weights"],
            topk_ids=found["topk_ids"],
            expert_map=found["expert_map"],
        )
        self.put((tensors["outputs"], made))
