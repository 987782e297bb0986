package client_test

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

// TestOverTLS: the token goes to whom the CA vouches for, and to nobody else.
func TestOverTLS(t *testing.T) {
	t.Parallel()
	var shown []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = append(shown, r.Header.Get("Authorization"))
		if r.URL.Path == "/v1/templates" {
			http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
			return
		}
		reply(http.StatusOK, api.Version{Version: "1"})(w, r)
	}))
	t.Cleanup(server.Close)
	server.Config.ErrorLog = nil
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := client.At(server.URL, "e2b_secret", ca)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := c.Version(t.Context()); err != nil || v.Version != "1" {
		t.Error(v, err)
	}
	if _, err := c.Templates(t.Context()); client.StatusOf(err) != http.StatusFound {
		t.Errorf("a redirect: %v", err)
	}
	strange, err := client.Open(client.Remote{URL: server.URL, Token: "e2b_other"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := strange.Version(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate that nobody vouches for: %v", err)
	}
	for _, header := range shown {
		if header != "Bearer e2b_secret" {
			t.Errorf("the server was shown %q", header)
		}
	}
	if len(shown) != 2 {
		t.Errorf("the server was asked %d times", len(shown))
	}
}

// TestAddresses: what can be no daemon's address is said before anything is sent.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"http://127.0.0.1:1":                "",
		"http://[::1]:1":                    "",
		"http://localhost:1":                "",
		"https://sandboxes.example":         "",
		"unix:///run/daemon.sock":           "",
		"unix://run/daemon.sock":            "absolute path",
		"http://sandboxes.example:7433":     "in the clear",
		"http://127.0.0.1.example":          "in the clear",
		"http://localhost.example":          "in the clear",
		"ftp://127.0.0.1":                   "has to begin with https://",
		"127.0.0.1:7433":                    "invalid daemon address: it is https://HOST:PORT, without",
		"https://user:pw@sandboxes.example": "invalid daemon address",
		"https://sandboxes.example/path":    "invalid daemon address",
		"":                                  "invalid daemon address",
	} {
		_, err := client.At(host, "e2b_secret", "")
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", host, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v; want %q", host, err, want)
		case err != nil && strings.Contains(err.Error(), "pw"):
			t.Errorf("%s: a password is told: %v", host, err)
		}
	}
	if _, err := client.At("https://sandboxes.example", "", ""); err == nil || !strings.Contains(err.Error(), "token") {
		t.Error(err)
	}
	if _, err := client.At("https://sandboxes.example", "a\nb", ""); err == nil {
		t.Error("a token with a line break was taken")
	}
	if _, err := client.At("https://sandboxes.example", "x", "/nonexistent"); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Error(err)
	}
	c, err := client.At("http://127.0.0.1:1", "x", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Version(t.Context()); !errors.Is(err, client.ErrNoDaemon) {
		t.Error(err)
	}
}

// TestCAFile: a file of certificates that is none, or not one of a size, is refused with a sentence, and nobody
// is waited for.
func TestCAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, large, plain := filepath.Join(dir, "pipe"), filepath.Join(dir, "large"), filepath.Join(dir, "plain")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(large, nil, 0o600), os.Truncate(large, 1<<20+1), os.WriteFile(plain, []byte("none"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		pipe:        "no regular file",
		dir:         "no regular file",
		"/dev/zero": "no regular file",
		large:       "larger than",
		plain:       "certificate", // the control: it is read
	} {
		if _, err := client.At("https://sandboxes.example", "x", path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", path, err, want)
		}
	}
}
