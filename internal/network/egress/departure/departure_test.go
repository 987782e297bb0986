package departure_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/network/egress/departure"
)

const secret = "canary-the-secret"

type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// fill puts the secret into every part of a request.
func fill(r *http.Request) error {
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = "/"+secret, "/"+secret, "key="+secret
	r.Header.Set("Authorization", secret)
	r.Header["X-Key"][0] = secret
	r.Host = secret
	return nil
}

func request(t *testing.T) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/bot?key=PLACEHOLDER", nil)
	r.Header.Set("X-Key", "PLACEHOLDER")
	return r
}

// TestOnlyTheTransportSeesTheSecret: not the client's request, not the answer, not an error,
// and not whoever prints what leaves. The control: the transport does.
func TestOnlyTheTransportSeesTheSecret(t *testing.T) {
	for _, cause := range []error{nil, errors.New("bad request /" + secret)} {
		r, sent := request(t), ""
		d, err := departure.Of(r, fill)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := d.Send(transport(func(r *http.Request) (*http.Response, error) {
			sent = fmt.Sprint(r.URL, r.Header, r.Host)
			if cause != nil {
				return nil, cause
			}
			return &http.Response{Request: r, Body: http.NoBody}, nil
		}))
		if strings.Count(sent, secret) != 5 {
			t.Errorf("the transport got %s", sent)
		}
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).Error("failed", "request", d, "error", err)
		text, wrong := json.Marshal(d)
		if wrong != nil {
			t.Fatal(wrong)
		}
		told := fmt.Sprintf("%v %+v %#v %s %v %s %v %v", d, d, d, text, err, log.String(), r.URL, r.Header)
		if cause == nil {
			told += fmt.Sprint(answer.Request.URL, answer.Request.Header, answer.Request.Host)
		} else if !errors.Is(err, cause) {
			t.Errorf("the cause is lost: %v", err)
		}
		if strings.Contains(told, secret) {
			t.Errorf("%v: %s", cause, told)
		}
	}
}

// TestAFailedFill gives nothing that could be sent.
func TestAFailedFill(t *testing.T) {
	wrong := errors.New("sealed")
	if d, err := departure.Of(request(t), func(*http.Request) error { return wrong }); d != nil || !errors.Is(err, wrong) {
		t.Error(d, err)
	}
}
