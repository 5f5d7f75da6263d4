"""What a robot's computer runs: numpy and onnxruntime; neither torch nor MuJoCo nor onnx."""
