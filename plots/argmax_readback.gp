# Tokens per second with the argmax on the device and with logits read back.
ways = 'argmax readback argmax_shared readback_shared'
captions = '"argmax on device, private" "logits read, private" "argmax on device, shared" "logits read, shared"'
load common.'bars.gp'
