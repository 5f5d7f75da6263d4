"""What a robot's computer runs: numpy and onnxruntime, without torch, MuJoCo or onnx."""
