package e2e

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// cloud NAME... serves hosts over TLS on loopback until the script's end, and configures the
// installation so that the names lead there. What comes to them is in the file requests, a
// line each. Each keeps objects (PUT, GET), and answers a POST to / as AWS's token service
// says who calls, if a request is signed with a key of the file keys.json (ids, secrets and
// tokens); it checks that by itself. /token is a token endpoint for the client agents; its
// URL is in TOKEN_URL. /invoices wants one of its tokens, and /revoke revokes the first.
func cloud(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: cloud NAME...")
	}
	c := &provider{log: &hostLog{path: ts.MkAbs("requests")}, objects: map[string]string{}}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("keys.json")), &c.keys))
	cert, ca, err := certified(args...)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), ca, 0o644))
	plain, secure := httptest.NewServer(c), httptest.NewUnstartedServer(c)
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	secure.StartTLS()
	ts.Defer(plain.Close)
	ts.Defer(secure.Close)
	ts.Setenv("TOKEN_URL", plain.URL+"/token")
	text := "network:\n  hosts:\n"
	for _, name := range args {
		text += fmt.Sprintf("    - { name: %q, port: 443, address: %q, ca_file: %q }\n", name, secure.Listener.Addr(), ts.MkAbs("ca.pem"))
	}
	ts.Check(os.WriteFile(stateFile(ts, "config.yaml"), []byte(text), 0o600))
}

// cloudKey is one that requests can be signed with.
type cloudKey struct{ ID, Secret, Token string }

// provider is a cloud of the test's own.
type provider struct {
	log  *hostLog
	keys []cloudKey

	mu      sync.Mutex // guards both
	objects map[string]string
	revoked bool // the first token of /token is good no more; there is another one
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	path := r.URL.EscapedPath()
	switch {
	case err != nil:
		p.note("%s %s%s broke off behind %q", r.Method, r.Host, path, body)
	case path == "/token":
		p.token(w, r, string(body))
	case path == "/invoices" || path == "/revoke":
		p.note("%s %s%s %s", r.Method, r.Host, path, r.Header.Get("Authorization"))
		if r.Header.Get("Authorization") != "Bearer "+p.bearer() {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, "you are %s", r.Header.Get("Authorization"))
		p.mu.Lock()
		defer p.mu.Unlock()
		p.revoked = p.revoked || path == "/revoke"
	default:
		key, wrong := p.signer(r, body)
		p.note("%s %s%s %s %s", r.Method, r.Host, path, r.Header.Get("X-Amz-Content-Sha256")[:min(len(r.Header.Get("X-Amz-Content-Sha256")), 24)], key+wrong)
		if wrong != "" {
			http.Error(w, "<Error><Code>SignatureDoesNotMatch</Code><Message>"+wrong+"</Message></Error>", http.StatusForbidden)
			return
		}
		p.serve(w, r, key, body)
	}
}

func (p *provider) note(format string, args ...any) {
	if err := p.log.write(format, args...); err != nil {
		panic(err)
	}
}

// bearer is the token that is good.
func (p *provider) bearer() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.revoked {
		return "token-of-the-operator-2"
	}
	return "token-of-the-operator"
}

// token gives a token to the client agents.
func (p *provider) token(w http.ResponseWriter, r *http.Request, body string) {
	form, _ := url.ParseQuery(body)
	id, own, basic := r.BasicAuth()
	if !basic {
		id, own = form.Get("client_id"), form.Get("client_secret")
	}
	p.note("%s /token %d %s %s", r.Method, r.ContentLength-int64(len(body)), id, own)
	w.Header().Set("Content-Type", "application/json")
	if id != "agents" || own != "client-of-the-operator" {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_client"}`)
		return
	}
	fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, p.bearer())
}

// serve is what comes after the signature.
func (p *provider) serve(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/":
		w.Header().Set("Content-Type", "text/xml")
		fmt.Fprintf(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Arn>arn:aws:iam::1:user/%s</Arn><UserId>U</UserId><Account>1</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`, key)
	case r.Method == http.MethodPut:
		p.objects[r.URL.Path] = unchunked(r, string(body))
		w.Header().Set("ETag", `"1"`)
	default:
		w.Header().Set("X-Echo", r.Header.Get("X-Amz-Security-Token"))
		fmt.Fprint(w, p.objects[r.URL.Path])
	}
}

// unchunked is a body without the chunks of AWS.
func unchunked(r *http.Request, body string) string {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return body
	}
	whole, from := "", bufio.NewReader(strings.NewReader(body))
	for {
		line, err := from.ReadString('\n')
		n, _ := strconv.ParseInt(strings.TrimSpace(line), 16, 64)
		if err != nil || n == 0 {
			return whole
		}
		chunk := make([]byte, n+2)
		if _, err := io.ReadFull(from, chunk); err != nil {
			return whole
		}
		whole += string(chunk[:n])
	}
}

// signer is with which key a request is signed, or what is wrong with its signature.
func (p *provider) signer(r *http.Request, body []byte) (id, wrong string) {
	rest, is := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	parts := map[string]string{}
	for part := range strings.SplitSeq(rest, ", ") {
		key, value, _ := strings.Cut(part, "=")
		parts[key] = value
	}
	scope := strings.Split(parts["Credential"], "/")
	if !is || len(scope) != 5 {
		return "", "not signed"
	}
	i := slices.IndexFunc(p.keys, func(k cloudKey) bool { return k.ID == scope[0] })
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	switch {
	case i < 0:
		return "", "an unknown key"
	case err != nil || time.Since(at).Abs() > 5*time.Minute || !strings.HasPrefix(r.Header.Get("X-Amz-Date"), scope[1]):
		return "", "another time"
	case r.Header.Get("X-Amz-Security-Token") != p.keys[i].Token:
		return "", "another token"
	}
	key := []byte("AWS4" + p.keys[i].Secret)
	for _, part := range scope[1:] {
		key = sealed(key, part)
	}
	sum := sha256.Sum256([]byte(canonical(r, body, parts["SignedHeaders"], scope[3])))
	text := "AWS4-HMAC-SHA256\n" + r.Header.Get("X-Amz-Date") + "\n" + strings.Join(scope[1:], "/") + "\n" + hex.EncodeToString(sum[:])
	if hex.EncodeToString(sealed(key, text)) != parts["Signature"] {
		return "", "another signature"
	}
	return p.keys[i].ID, ""
}

func sealed(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = io.WriteString(h, text)
	return h.Sum(nil)
}

// canonical is what is signed of a request.
func canonical(r *http.Request, body []byte, fields, service string) string {
	path := escaped(r.URL.Path, "/")
	if service != "s3" {
		path = escaped(path, "/")
	}
	var query []string
	for key, values := range r.URL.Query() {
		for _, value := range values {
			query = append(query, escaped(key, "")+"="+escaped(value, ""))
		}
	}
	slices.Sort(query)
	text := r.Method + "\n" + path + "\n" + strings.Join(query, "&") + "\n"
	for field := range strings.SplitSeq(fields, ";") {
		value := strings.Join(r.Header.Values(field), ",")
		switch field {
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.Itoa(len(body))
		}
		text += field + ":" + strings.Join(strings.Fields(value), " ") + "\n"
	}
	payload := r.Header.Get("X-Amz-Content-Sha256")
	sum := sha256.Sum256(body)
	if hashed := hex.EncodeToString(sum[:]); payload == "" || len(payload) == len(hashed) && payload != hashed {
		payload = hashed
	}
	return text + "\n" + fields + "\n" + payload
}

// escaped has all escaped but what AWS leaves, and the letters in keep.
func escaped(text, keep string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~"+keep, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
