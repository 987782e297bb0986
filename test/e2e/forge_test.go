package e2e

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// forge NAME REPOSITORY... serves repositories by git's own server over TLS until the script's end,
// and configures the installation so that the name leads there. Each is bare, is the file
// repos/REPOSITORY.git, and has a commit on its branch main. A client that shows the password in
// the file token may fetch and push; the file requests has what came, a line each.
func forge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: forge NAME REPOSITORY...")
	}
	root, name := ts.MkAbs("repos"), args[0]
	for _, repository := range args[1:] {
		ts.Check(newRepository(ts, filepath.Join(root, repository+".git")))
	}
	ts.Check(ts.Exec("git", "--exec-path"))
	f := &gitHost{
		log:   &hostLog{path: ts.MkAbs("requests")},
		token: strings.TrimSpace(ts.ReadFile("token")),
		to: &cgi.Handler{
			Path: filepath.Join(strings.TrimSpace(ts.ReadFile("stdout")), "git-http-backend"),
			Env:  []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=somebody", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + root},
		},
	}
	cert, ca, err := certified(name)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), ca, 0o644))
	server := httptest.NewUnstartedServer(f)
	server.TLS, server.EnableHTTP2 = &tls.Config{Certificates: []tls.Certificate{cert}}, true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // a connection that ends while a push waits is none of its faults
	server.StartTLS()
	ts.Defer(server.Close)
	text := fmt.Sprintf("network:\n  hosts:\n    - { name: %q, port: 443, address: %q, ca_file: %q }\n", name, server.Listener.Addr(), ts.MkAbs("ca.pem"))
	ts.Check(os.WriteFile(stateFile(ts, "config.yaml"), []byte(text), 0o600))
}

// newRepository makes a bare repository with one commit.
func newRepository(ts *testscript.TestScript, at string) error {
	work := at + ".work"
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", work},
		{"-C", work, "-c", "user.name=a", "-c", "user.email=a@t.example", "commit", "-q", "--allow-empty", "-m", "the first of " + filepath.Base(at)},
		{"clone", "-q", "--bare", work, at},
	} {
		if err := ts.Exec("git", args...); err != nil {
			return err
		}
	}
	return os.RemoveAll(work)
}

// gitHost is a host of repositories.
type gitHost struct {
	log   *hostLog
	token string
	to    http.Handler
}

func (h *gitHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, password, _ := r.BasicAuth()
	known := "a stranger"
	if password == h.token {
		known = "a known one"
	}
	if err := h.log.write("%s %s%s by %s", r.Method, r.Host, r.URL.RequestURI(), known); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if password != h.token {
		w.Header().Set("WWW-Authenticate", `Basic realm="repositories"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(r.Body) // CGI takes no body of a length that is not known
	if err != nil {
		return // the client has gone
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	h.to.ServeHTTP(w, r)
}
