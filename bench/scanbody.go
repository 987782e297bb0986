package main

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	asks "github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/placeholder"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/scanning"
)

// redacting is a door whose policy has secrets redacted in requests.
type redacting struct{ asks.Door }

// Scans implements door.Door.
func (redacting) Scans(context.Context, asks.ScansAsk) (asks.ScansAnswer, error) {
	return asks.ScansAnswer{Plan: dlp.Plan{Secrets: dlp.Redact}}, nil
}

// bodies sends bodies of requests through what looks at them on their way.
type bodies struct {
	scans   requests.Exchange
	watches *exchange.Exchange // for placeholders
}

func newBodies(ctx context.Context, set *dlp.Set) (bodies, error) {
	scans, err := scanning.Exchanges{Door: redacting{}, Set: func() *dlp.Set { return set }}.Exchange(ctx, requests.Connection{Name: "api.example", Port: 443, TLS: true})
	fake, _ := placeholder.Find("openai")
	return bodies{scans, exchange.New(nil, map[string]string{"one": fake.New()}, nil)}, err
}

// send reads a body through an exchange, as it is read when it is sent.
func (bodies) send(ctx context.Context, by interface{ Outgoing(*http.Request) error }, text []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api.example/v1", io.NopCloser(bytes.NewReader(text)))
	if err != nil {
		return err
	}
	if err := by.Outgoing(r); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return err
	}
	return r.Body.Close()
}
