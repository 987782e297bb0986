package node

import "testing"

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"name": "a", "x": {"name": 1}, "version": "1"}`))
	f.Fuzz(func(_ *testing.T, head []byte) { parseManifest(head) })
}
