package wasm

import (
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// Bounds of what a machine hands over at one time.
const (
	maxArguments = 4         // of a call of the host
	maxVerb      = 16        // bytes
	maxAsk       = 128 << 10 // bytes of a tool's name and arguments, before they are read as such
	maxSaid      = 4 << 10   // bytes of a message or a stack
)

// view is a machine's memory as the host reads it: every address may be wrong.
type view interface {
	Read(offset, count uint32) ([]byte, bool)
	ReadUint32Le(offset uint32) (uint32, bool)
}

var _ view = api.Memory(nil)

// textAt copies size bytes; false if they are not there or more than most.
func textAt(m view, at, size uint32, most int) (string, bool) {
	if uint64(size) > uint64(most) {
		return "", false
	}
	b, ok := m.Read(at, size)
	if !ok {
		return "", false
	}
	return string(b), true
}

// addressesAt reads the addresses of a call's arguments; false if there are too many, or
// they are not there.
func addressesAt(m view, argc, argv uint32) ([]uint32, bool) {
	if argc > maxArguments {
		return nil, false
	}
	all := make([]uint32, 0, argc)
	for i := range argc {
		at := uint64(argv) + 4*uint64(i)
		if at > 1<<32-4 {
			return nil, false
		}
		address, ok := m.ReadUint32Le(uint32(at))
		if !ok {
			return nil, false
		}
		all = append(all, address)
	}
	return all, true
}

// printableText is a text of the code's for people: valid, and short.
func printableText(s string) string {
	s = s[:min(len(s), maxSaid)]
	return strings.ToValidUTF8(s, "\uFFFD")
}
