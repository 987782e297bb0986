package exchange

import (
	"bytes"
	"maps"
	"slices"
	"testing"
)

// FuzzScan: whatever stands around a secret, in whichever escapes it is written and wherever what comes
// is cut, it does not come through as it is written, nothing gets longer or shorter, and nothing panics.
func FuzzScan(f *testing.F) {
	const needle = "sk-secret/value+1"
	ways := map[string]func(string) string{"as it is": func(s string) string { return s }, "base64": encode}
	maps.Copy(ways, escapes())
	names := slices.Sorted(maps.Keys(ways))
	for i := range names {
		f.Add([]byte(`{"a":"b\`), []byte("&amp;\r\n%u00"), uint8(i), uint8(i))
		f.Add([]byte(`\N{`), []byte(`\N}`), uint8(i), uint8(255))
		f.Add([]byte("c2sK="), []byte("=3D="), uint8(i), uint8(3))
	}
	sought := seek(needle)
	f.Fuzz(func(t *testing.T, before, after []byte, way, cut uint8) {
		written := []byte(ways[names[int(way)%len(names)]](needle))
		text := slices.Concat(before, []byte(" "), written, []byte(" "), after)
		if len(text) > 1<<16 {
			return
		}
		s, out := scan{needles: sought}, []byte(nil)
		for rest := text; len(rest) > 0; {
			n := min(int(cut)+1, len(rest))
			part, _ := s.takeMore(bytes.Clone(rest[:n]), n == len(rest))
			out, rest = append(out, part...), rest[n:]
		}
		if len(out) != len(text) {
			t.Fatalf("%d bytes came of %d", len(out), len(text))
		}
		if at := len(before) + 1; bytes.Equal(out[at:at+len(written)], written) {
			t.Fatalf("%s came through: %q", names[int(way)%len(names)], out)
		}
	})
}
