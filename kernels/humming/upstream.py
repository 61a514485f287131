"""upstream.py - the calls of the worker protocol, answered by the package `humming`."""

import dataclasses
import importlib
import json
import math
import os

import torch

from order import Order
from recording import Recording, settle
from worker import INVALID, UNSUPPORTED, Memory, Refusal, name_of, view

GEMM_TYPES = ["dense", "indexed", "grouped_contiguous", "grouped_masked"]
SCALE_TYPES = ["channel", "group", "block", "tensor"]
SCALE_2_TYPES = ["none", "tensor", "channel"]
MMA_TYPES = [None, "mma", "wgmma", "umma", "mxmma"]
QUANT_MODES = [
    "none",
    "static_tensor",
    "dynamic_token",
    "dynamic_group",
    "static_tensor_dynamic_group",
    "dynamic_group_token",
]
WEIGHTS = ["weight", "weight_scale", "zero_point", "weight_scale_2", "bias"]
TMA = ["a", "b", "c", "bs", "bs2", "bzp", "bias", "as", "as2"]
FLAGS = ["use_stream_k", "use_warp_spec", "use_mbarrier", "use_cp_async", "use_pdl"]
NUMBERS = ["num_stages", "num_ctas_per_sm", "num_sms", "num_write_splits"]
NUMBERS += ["multi_cast_size_a", "multi_cast_size_b", "raster_group_m"]


def optional(module, name=None):
    """A module or a name of it, or None where this version lacks it."""
    try:
        found = importlib.import_module(module)
    except ImportError:
        return None
    return found if name is None else getattr(found, name, None)


def fields_of(cls):
    return {f.name for f in dataclasses.fields(cls) if f.init}


class Upstream:
    def __init__(self, path):
        import humming

        self.memory = Memory(torch)
        self.package = humming
        self.path = path
        self.config = importlib.import_module("humming.config")
        self.transform_module = importlib.import_module("humming.transform")
        self.forward_module = importlib.import_module("humming.forward")
        self.tune = importlib.import_module("humming.tune")
        self.kernel = importlib.import_module("humming.kernel.humming").HummingKernel
        self.layer_fields = fields_of(self.config.LayerConfig)
        self.tuning_fields = fields_of(self.config.TuningConfig)
        self.compute_fields = fields_of(self.config.ComputeConfig)
        self.order = Order(path, torch.cuda.get_device_properties().multi_processor_count)
        self.recording = Recording()
        self.layers, self.shapes, self.chosen = {}, {}, {}
        with open(os.path.join(path, "humming", "csrc", "launcher", "tensor.h"), encoding="utf-8") as file:
            self.has_row_of_scales = "{1, shape_m}" in file.read()

    def calls(self):
        from upstream_ops import Operations

        mine = {
            "hello": self.hello,
            "alloc": lambda payload, bytes: {"data": self.memory.alloc(bytes)},
            "release": lambda payload, data: self.memory.release(data),
            "upload": self.upload,
            "download": self.download,
            "supports": self.supports,
            "heuristics": self.heuristics,
            "transform_shapes": self.transform_shapes,
            "transform": self.transform,
            "accumulation": self.accumulation,
        }
        launches = {"forward": self.forward} | Operations(self.memory).calls()
        launches = {name: self.recording.recordable(call) for name, call in launches.items()}
        return mine | launches | self.recording.calls()

    def hello(self, payload):
        version = optional("humming._version", "__version__") or optional("humming", "__version__")
        major, minor = torch.cuda.get_device_capability()
        from upstream_ops import Operations

        return {
            "name": "humming",
            "version": str(version or "unknown"),
            "device": torch.cuda.get_device_name(),
            "sm": major * 10 + minor,
            "ops": sorted([*Operations(self.memory).calls(), *self.recording.calls()]),
            "tiles_n_fastest": True,
            "inert_tuning": ["num_stages", "use_warp_spec", "use_mbarrier", "use_cp_async", "use_pdl"]
            + [f"use_tma_{x}" for x in TMA]
            + ["multi_cast_size_a", "multi_cast_size_b", "raster_group_m", "num_write_splits"],
        }

    def upload(self, payload, data):
        source = torch.frombuffer(bytearray(payload), dtype=torch.uint8)
        self.memory.bytes(data, len(payload)).copy_(source)
        torch.cuda.synchronize()

    def download(self, payload, data, bytes):
        torch.cuda.synchronize()
        return {"payload": self.memory.bytes(data, bytes).cpu().numpy().tobytes()}

    # ---- configurations ----

    def layer(self, layer):
        key = json.dumps(layer, sort_keys=True)
        if key not in self.layers:
            values = dict(layer)
            for x in ("a", "b", "c", "bs", "as"):
                values[f"{x}_dtype"] = name_of(layer[f"{x}_dtype"])
            values["weight_scale_type"] = SCALE_TYPES[layer["weight_scale_type"]]
            values["weight_scale_2_type"] = SCALE_2_TYPES[layer["weight_scale_2_type"]]
            values["input_quant_mode"] = QUANT_MODES[layer["input_quant_mode"]]
            values["mma_type"] = MMA_TYPES[layer["mma_type"]]
            for name in ("use_int_weight_scale", "use_fused_e8m0_scale", "has_zero_point"):
                values[name] = bool(layer[name])
            values["is_fp_zero_point"] = bool(layer["is_fp_zero_point"])
            values["has_bias"] = bool(layer["has_bias"])
            if layer["weight_scale_type"] == SCALE_TYPES.index("group"):
                values["weight_scale_group_size_n"] = max(1, layer["weight_scale_group_size_n"])
            if values["bs_dtype"] == "float32" and SCALE_TYPES[layer["weight_scale_type"]] == "tensor":
                values["bs_dtype"] = values["c_dtype"]
            known = {k: v for k, v in values.items() if k in self.layer_fields}
            self.layers[key] = self.config.LayerConfig(**known)
        return self.layers[key]

    def compute(self, compute):
        values = {name: bool(value) for name, value in compute.items()}
        values["gemm_type"] = GEMM_TYPES[compute["gemm_type"]]
        lacks = [k for k, v in values.items() if k not in self.compute_fields and v]
        if lacks:
            raise Refusal(UNSUPPORTED, f"this version has no {', '.join(lacks)}")
        return {k: v for k, v in values.items() if k in self.compute_fields}

    def tuning(self, tuning, layer):
        """Upstream's dictionary; what its own heuristics returned comes back as it was."""
        key = json.dumps(tuning, sort_keys=True)
        if key in self.chosen:
            return self.chosen[key]
        values = {
            "block_shape": [tuning["block_m"], tuning["block_n"], tuning["block_k"]],
            "warp_shape": [tuning["warp_m"], tuning["warp_n"], tuning["warp_k"]],
        }
        values |= {name: bool(tuning[name]) for name in FLAGS}
        values |= {name: tuning[name] for name in NUMBERS}
        tma = {f"use_tma_{x}": bool(tuning[f"use_tma_{x}"]) for x in TMA}
        values |= {"use_tma": any(tma.values())} | tma
        if "mma_type" in self.tuning_fields and "mma_type" not in self.layer_fields:
            values["mma_type"] = MMA_TYPES[layer["mma_type"]]
        sms = values.pop("num_sms")
        lacks = [k for k, v in values.items() if k not in self.tuning_fields and v not in (0, 1, False)]
        if lacks:
            raise Refusal(UNSUPPORTED, f"this version has no {', '.join(lacks)}")
        values = {k: v for k, v in values.items() if k in self.tuning_fields}
        return values | ({"num_sms": sms} if sms else {})

    def as_struct(self, values):
        """Upstream's dictionary as the contract's tuning."""
        known = {k: v for k, v in values.items() if k in self.tuning_fields}
        full = self.config.TuningConfig(**known)
        block, warp = full.block_shape, full.warp_shape
        out = dict(zip(["block_m", "block_n", "block_k"], block))
        out |= dict(zip(["warp_m", "warp_n", "warp_k"], warp))
        for name in FLAGS + [f"use_tma_{x}" for x in TMA]:
            out[name] = int(bool(getattr(full, name, False)))
        for name in NUMBERS:
            out[name] = int(getattr(full, name, 0) or values.get(name, 0) or 0)
        return out

    def configs(self, layer, compute, tuning):
        return self.kernel.prepare_kernels(
            json.loads(self.layer(layer).to_str()),
            self.compute(compute),
            json.loads(json.dumps(self.tuning(tuning, layer))),
        )

    def instruction(self, layer, compute, tuning):
        """The compiled kernel, and the name of its instruction."""
        kernel = self.kernel._id2kernel[int(self.configs(layer, compute, tuning)[2])]
        return kernel, getattr(kernel.mma_type, "value", kernel.mma_type)

    def supports(self, payload, layer, compute, tuning):
        self.standard(layer)
        kind = self.instruction(layer, compute, tuning)[1]
        asked = MMA_TYPES[layer["mma_type"]]
        if asked not in (None, kind):
            raise Refusal(UNSUPPORTED, f"heuristics of this version choose {kind} where {asked} is asked for")

    def heuristics(self, payload, layer, compute, m):
        options = self.compute(compute)
        values = self.tune.get_heuristics_config(self.layer(layer), shape_m=max(m, 1), **options)
        out = self.as_struct(values)
        self.chosen[json.dumps(out, sort_keys=True)] = dict(values)
        return {"tuning": out}

    # ---- weights ----

    def transform_shapes(self, payload, layer):
        key = json.dumps(layer, sort_keys=True)
        if key not in self.shapes:
            made = self.transformed(layer, self.zeros(layer))
            self.shapes[key] = {name: (list(t.shape), t.dtype) for name, t in made.items()}
        sizes = {name: math.prod(s) * d.itemsize for name, (s, d) in self.shapes[key].items()}
        return {"weights": {name: [self.shapes[key][name][0], n] for name, n in sizes.items()}}

    def kernel_form(self, layer, weights):
        """The wire knows kernel tensors as bytes: here they get upstream's shape and format back."""
        self.transform_shapes(b"", layer)
        if any(t and (name_of(t[1]) != "int8" or t[3:] != [t[2]]) for t in weights.values()):
            raise Refusal(INVALID, "the kernel form of weights is bytes")
        return {
            name: self.memory.bytes(t[0], t[2]).view(dtype).view(shape)
            for name, (shape, dtype) in self.shapes[json.dumps(layer, sort_keys=True)].items()
            if (t := weights[name])
        }

    def standard(self, layer):
        """Shapes and formats of the standard tensors, as upstream's schema has them."""
        config = self.layer(layer)
        schema = importlib.import_module("humming.schema").HummingWeightSchema
        names = fields_of(schema)
        made = schema(**{k: getattr(config, k) for k in names if hasattr(config, k)})
        return made.get_tensors_attrs(
            shape_n=config.shape_n - config.pad_shape_n,
            shape_k=config.shape_k - config.pad_shape_k,
            num_experts=config.num_experts,
            param_dtype=config.param_dtype,
            has_bias=config.has_bias,
        )

    def zeros(self, layer):
        """Standard tensors of the valid shape, all zero."""
        return {
            name: torch.zeros(a["shape"], dtype=torch.uint8, device="cuda")
            .to(a["dtype"] if a["dtype"].itemsize > 1 else torch.uint8)
            .view(a["dtype"])
            for name, a in self.standard(layer).items()
        }

    def transformed(self, layer, tensors):
        return self.transform_module.transform_humming_tensors(self.layer(layer), tensors)

    def transform(self, payload, layer, standard, out):
        tensors = {n: t.clone() for n in WEIGHTS if (t := view(self.memory, standard[n])) is not None}
        made = self.transformed(layer, tensors)
        for name, tensor in made.items():
            place = view(self.memory, out[name])
            if place is None or place.numel() * place.element_size() != tensor.numel() * tensor.element_size():
                raise Refusal(INVALID, f"the place for {name} has not the size of transform_shapes")
            place.view(torch.uint8).view(-1).copy_(tensor.contiguous().view(torch.uint8).view(-1))
        torch.cuda.synchronize()

    # ---- products ----

    def forward(self, payload, layer, compute, tuning, tensors, weights, top_k, valid_shape_m):
        from humming import ops

        found = {name: view(self.memory, t) for name, t in tensors.items()}
        made = self.kernel_form(layer, weights)
        if found["inputs"] is None or found["inputs"].size(0) == 0:
            return
        if found.get("locks") is None and not tuning["use_stream_k"]:
            found["locks"] = torch.zeros(1024, dtype=torch.int32, device="cuda")
        if compute["use_m_major_input_scale"] and not layer["input_scale_group_size"]:
            found["input_scale"] = self.token_scales(found["input_scale"], found["inputs"].size(0))
        result = ops.launch_kernel(
            configs=self.configs(layer, compute, tuning),
            top_k=top_k,
            valid_shape_m=valid_shape_m,
            **{k: v for k, v in found.items() if v is not None},
            **made,
        )
        settle()
        if result.data_ptr() != found["outputs"].data_ptr():
            raise Refusal(INVALID, "upstream wrote into memory of its own instead of the outputs")

    def token_scales(self, scales, m):
        """M-major scales of whole rows, without padding: a column or, where the launcher says so, a row."""
        if scales is None:
            return None
        return scales.view(-1)[:m].view((1, m) if self.has_row_of_scales else (m, 1))

    def accumulation(self, payload, layer, compute, tuning, m, row, col):
        config = self.layer(layer)
        kernel, kind = self.instruction(layer, compute, tuning)
        if kind not in ("mma", "wgmma"):
            raise Refusal(UNSUPPORTED, "the order of sums is known for mma and wgmma only")
        operand = getattr(kernel, "mma_b_dtype", config.a_dtype)
        if layer["a_dtype"] // 10000000 == 2 and str(operand) != str(config.a_dtype):
            raise Refusal(UNSUPPORTED, "the tensor core is not known for operands of two formats")
        bits = layer["a_dtype"] // 10000 % 100
        block_m, block_n = tuning["block_m"], tuning["block_n"]
        is_fused = bool(config.use_fused_e8m0_scale)
        slices = self.order.slices(layer, tuning, compute["gemm_type"] == 0, m, row, col)
        shifts = self.order.shifts(layer, bool(compute["use_f16_accum"]), is_fused)
        return {
            "mma_type": MMA_TYPES.index(kind),
            "sm": torch.cuda.get_device_capability()[0] * 10,
            "instruction_k": 256 // bits,
            "block_k": tuning["block_k"],
            "warp_k": tuning["warp_k"],
            "flush_k": self.order.flush_k(layer, tuning, is_fused),
            "row_begin": row // block_m * block_m,
            "row_end": min(row // block_m * block_m + block_m, m),
            "col_begin": col // block_n * block_n,
            "col_end": min(col // block_n * block_n + block_n, layer["shape_n"] - layer["pad_shape_n"]),
            "slices": slices,
            "ordered": int(self.order.ordered(len(slices), bool(kernel.use_tma_c))),
            "warps_in_order": int(self.order.warps_in_order(tuning)),
        } | dict(zip(["operand_shift", "flush_shift", "output_shift"], shifts))
