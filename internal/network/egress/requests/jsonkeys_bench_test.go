package requests

import (
	"encoding/json"
	"strings"
	"testing"
)

// conversation is about a megabyte of a model's messages, with code, lines and quotes in them as agents send these.
func conversation(b *testing.B) []byte {
	b.Helper()
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	text := "Look at the file and tell me which of its functions has a method_name, please.\n\n```go\nfunc (r *reader) take(p []byte) (n int, err error) {\n\tfor i, c := range p {\n\t\tif c == '\"' || c == '\\\\' {\n\t\t\treturn i, fmt.Errorf(\"no such byte: %q\", c)\n\t\t}\n\t}\n}\n```\n\n" +
		strings.Repeat("It reads what comes of the stream, and gives back how much of that can be handed on; nothing is held but the end. ", 8)
	var all []message
	for range 1 << 20 / (2 * len(text)) {
		all = append(all, message{"user", text}, message{"assistant", text})
	}
	body, err := json.Marshal(map[string]any{"model": "a-model-1", "max_tokens": 1024, "messages": all})
	if err != nil {
		b.Fatal(err)
	}
	return body
}

// BenchmarkKeysOfJSON is how fast bodies are looked through for a method's key: a model's messages, which are JSON by the letter, and the same
// behind a comment, which makes them none.
func BenchmarkKeysOfJSON(b *testing.B) {
	body := conversation(b)
	beyond := strings.ReplaceAll(string(body), "please", "s’il te plaît")
	for name, text := range map[string]string{"by the letter": string(body), "with other letters": beyond, "behind a comment": "/**/" + string(body)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				keys, rest := &jsonKeys{}, []byte(text)
				for at := 0; at < len(rest); at += 32 << 10 {
					if wrong := keys.readPiece(rest[at:min(at+32<<10, len(rest))]); wrong != "" {
						b.Fatal(wrong)
					}
				}
			}
		})
	}
}
