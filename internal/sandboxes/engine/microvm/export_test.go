package microvm

import "slices"

// OnHardware has an engine believe that a device is KVM, and has proved itself.
func (e *Engine) OnHardware(device string) *Engine {
	e.device = device
	e.kvm = func() kvmVerdict { return kvmFast }
	return e
}

// ByStream has an engine make machines as older versions did, whose memory is in the stream.
func (e *Engine) ByStream() *Engine {
	e.stream = true
	return e
}

// ChannelPort is where agents wait for their channel.
const ChannelPort = channelPort

// Modules are those that machines need, whatever runs them.
func Modules() []string { return slices.Concat(needed(), fire{}.modules(), qemu{}.modules()) }
