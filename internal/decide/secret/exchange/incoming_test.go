package exchange

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
)

// BenchmarkIncoming is an answer of 100 MB on its way in, of a run with a secret.
func BenchmarkIncoming(b *testing.B) {
	const size = 100 << 20
	random := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	for name, text := range map[string][]byte{
		"events": bytes.Repeat([]byte("data: {\"delta\":\"some words of a model\"}\n\n"), 1<<15),
		"prose":  bytes.Repeat([]byte("It is a truth universally acknowledged, that a single man in possession of a good fortune "), 1<<14),
		"binary": random,
	} {
		b.Run(name, func(b *testing.B) {
			e := New(nil, nil, &renewing{values: []string{"sk-proj-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKl"}}).Seek()
			b.SetBytes(size)
			for b.Loop() {
				r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://api.example/", nil)
				if err != nil {
					b.Fatal(err)
				}
				if err := e.Outgoing(r); err != nil {
					b.Fatal(err)
				}
				a := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r, ContentLength: size, Body: io.NopCloser(io.LimitReader(&repeated{text: text}, size))}
				if err := e.Incoming(a); err != nil {
					b.Fatal(err)
				}
				if n, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{a.Body}, make([]byte, 32<<10)); n != size || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
}

// repeated is a text without end.
type repeated struct {
	text []byte
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}
