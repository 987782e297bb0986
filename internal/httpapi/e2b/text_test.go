package e2b

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// TestTextThatIsNone: a message with bytes that are no UTF-8, or with half of a surrogate pair, is
// refused in both forms of each call that names something, where encoding/json would make U+FFFD of it.
func TestTextThatIsNone(t *testing.T) {
	t.Parallel()
	for moment, message := range map[string]string{
		"argument":        `{"process":{"cmd":"printf","args":["%s"]}}`,
		"program":         `{"process":{"cmd":"%s"}}`,
		"variable's name": `{"process":{"cmd":"x","envs":{"A%s":"1"}}}`,
		"variable":        `{"process":{"cmd":"x","envs":{"A":"%s"}}}`,
		"folder":          `{"process":{"cmd":"x","cwd":"/%s"}}`,
		"path":            `{"path":"/%s"}`,
		"source":          `{"source":"/%s","destination":"/x"}`,
		"destination":     `{"source":"/x","destination":"/%s"}`,
	} {
		for _, none := range []string{`\udcff`, `\ud83d`, `\ud83dx`, "\xff"} {
			var v map[string]any
			if err := decodeMessage(fmt.Appendf(nil, message, none), &v); err == nil || !strings.Contains(err.Error(), "UTF-8") {
				t.Errorf("%s: %q came through as %v", moment, none, v)
			}
		}
		var v map[string]any
		if err := decodeMessage(fmt.Appendf(nil, message, `\ud83d\ude00`), &v); err != nil {
			t.Errorf("%s: a pair is refused: %v", moment, err)
		}
	}
	for path, codec := range newCodecs() {
		fields := codec.in.Fields()
		for i := range fields.Len() {
			field := fields.Get(i)
			if field.Kind().String() != "string" || field.IsMap() {
				continue
			}
			data := protowire.AppendString(protowire.AppendTag(nil, field.Number(), protowire.BytesType), "bad\xff")
			var v map[string]any
			if err := codec.decode(data, &v); err == nil {
				t.Errorf("%s: the %s of a binary message came through as %v", path, field.Name(), v)
			}
		}
	}
}
