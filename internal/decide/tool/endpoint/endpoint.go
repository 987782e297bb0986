// Package endpoint runs tools that are HTTP endpoints: the arguments are the body of a POST
// to the operator's fixed URL, and the body of the answer is what the tool answers. No redirect
// is followed, no proxy is asked, and no compression is undone.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
)

// Endpoint is an HTTP endpoint of the operator's.
type Endpoint struct {
	url        string
	client     *http.Client
	credential func(ctx context.Context) (Credential, error) // nil: it asks for none
}

// Credential is by what an endpoint knows the daemon.
type Credential struct {
	Header, Value string
	// Secrets are what no answer of the endpoint's may have in it.
	Secrets tool.Secrets
}

// Authorize has each call carry a credential, which is asked for anew each time. An answer
// that has a secret in it is not passed on: it is for the endpoint alone, and no sandbox's.
func (e *Endpoint) Authorize(credential func(ctx context.Context) (Credential, error)) {
	e.credential = credential
}

var _ tool.Runner = (*Endpoint)(nil)

// The headers that tell an endpoint who calls.
const (
	runHeader     = "Cofferdam-Run"
	sandboxHeader = "Cofferdam-Sandbox"
)

// New takes the URL, of http or https, without credentials.
func New(address string) (*Endpoint, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("it is no URL; write it as https://tools.corp.example/t") // not shown: it may hold a password
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "":
		return nil, fmt.Errorf("%q is no URL of http or https", u.Redacted())
	case u.User != nil:
		return nil, fmt.Errorf("%q has credentials in it, which are not sent", u.Redacted())
	case u.Fragment != "":
		return nil, fmt.Errorf("%q has a part behind #, which is not sent", u.Redacted())
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	return &Endpoint{url: u.String(), client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			DisableCompression:     true,
			MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConns:           8,
			IdleConnTimeout:        time.Minute,
			TLSHandshakeTimeout:    10 * time.Second,
		},
	}}, nil
}

// Definition implements tool.Runner. The credential is no part of it: it may be renewed.
func (e *Endpoint) Definition() string { return "endpoint " + e.url }

// Run implements tool.Runner. An answer with another status than 200 is a failure.
func (e *Endpoint) Run(ctx context.Context, call tool.Call) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, strings.NewReader(call.Arguments))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "cofferdam")
	request.Header.Set(runHeader, call.Run)
	request.Header.Set(sandboxHeader, call.Sandbox)
	var known Credential
	if e.credential != nil {
		if known, err = e.credential(ctx); err != nil {
			return nil, &tool.Failure{Sentence: "the tool's endpoint was not asked, since its secret can't be had; the daemon's log says why", Cause: err}
		}
		request.Header.Set(known.Header, known.Value)
	}
	answer, err := e.client.Do(request)
	if err != nil {
		return nil, &tool.Failure{Sentence: "the tool's endpoint did not answer", Cause: err}
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, &tool.Failure{Sentence: fmt.Sprintf("the tool failed: its endpoint answered with the status %d", answer.StatusCode)}
	}
	if encoding := answer.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, &tool.Failure{Sentence: "the tool's endpoint answered in an encoding that nobody asked for"}
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, call.MaxOutput+1))
	switch {
	case int64(len(body)) > call.MaxOutput:
		return nil, tool.TooMuch(call.MaxOutput)
	case err != nil:
		return nil, &tool.Failure{Sentence: "the tool's endpoint broke its answer off", Cause: err}
	case known.Secrets.In(string(body)):
		return nil, tool.Betrayed()
	}
	return body, nil
}
