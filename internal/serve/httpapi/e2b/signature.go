package e2b

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// A signed URL names no sandbox where all share one base URL: its signature,
// which is keyed by a sandbox's access token, does.
const (
	filesPath       = "/files"
	signatureParam  = "signature"
	expirationParam = "signature_expiration"
	signaturePrefix = "v1_"
)

// errExpired's text is what clients compare with.
var errExpired = &failure{Code: codeUnauthenticated, Message: "signature is already expired"}

// isSigned tells whether a request is for a file and signed.
func isSigned(r *http.Request) bool {
	return r.URL.Path == filesPath && r.URL.Query().Has(signatureParam)
}

// Sign makes the signature of a request for a file: op is "read" or "write", user
// may be "", expires in unix seconds, "" for never. Unpadded base64 of a SHA-256
// keyed by the sandbox's access token.
func Sign(path, op, user, token, expires string) string {
	text := path + ":" + op + ":" + user + ":" + token
	if expires != "" {
		text += ":" + expires
	}
	sum := sha256.Sum256([]byte(text))
	return signaturePrefix + base64.RawStdEncoding.EncodeToString(sum[:])
}

// checkSignature says whether a request was signed with token, and still counts.
func checkSignature(r *http.Request, token string, now time.Time) error {
	q := r.URL.Query()
	if !signedWith(r.Method, q, token) {
		return refuseWith(codeUnauthenticated, "invalid signature")
	}
	if !q.Has(expirationParam) {
		return nil
	}
	expires, err := strconv.ParseInt(q.Get(expirationParam), 10, 64)
	if err != nil {
		return refuseWith(codeInvalid, "signature_expiration %.30q is not a time in seconds", q.Get(expirationParam))
	}
	if now.Unix() >= expires {
		return errExpired
	}
	return nil
}

func signedWith(method string, q url.Values, token string) bool {
	var op string // each signature is for one of the two
	switch method {
	case http.MethodGet, http.MethodHead:
		op = "read"
	case http.MethodPost:
		op = "write"
	default:
		return false
	}
	want := Sign(q.Get("path"), op, q.Get("username"), token, q.Get(expirationParam))
	return subtle.ConstantTimeCompare([]byte(q.Get(signatureParam)), []byte(want)) == 1
}

// Bounds of what a signature is made over, in bytes: a stranger has it looked at once for each sandbox.
const (
	maxSignedPath = 4_095 // Linux opens no longer one
	maxSignedUser = 256
	maxExpiration = 20
)

// maySign tells whether there could be a signature of a request at all.
func maySign(q url.Values) bool {
	return len(q.Get(signatureParam)) == len(signaturePrefix)+base64.RawStdEncoding.EncodedLen(sha256.Size) &&
		len(q.Get("path")) <= maxSignedPath && len(q.Get("username")) <= maxSignedUser && len(q.Get(expirationParam)) <= maxExpiration
}

// signer finds the sandbox whose token made a signature, by trying the tokens of
// those that live. It looks at all of them, found or not.
func (d *Data) signer(r *http.Request) (target, error) {
	q := r.URL.Query()
	if !maySign(q) {
		return target{}, refuseWith(codeUnauthenticated, "the signature is of no sandbox that lives")
	}
	var found string
	for _, box := range backend.Listed(d.cfg.Sandboxes, backend.AnyOwnersViewer) {
		id := box.Info().ID
		if token := d.cfg.Access.Token(id); token != "" && signedWith(r.Method, q, token) {
			found = id
		}
	}
	if found == "" {
		return target{}, refuseWith(codeUnauthenticated, "the signature is of no sandbox that lives")
	}
	if err := checkSignature(r, d.cfg.Access.Token(found), d.cfg.Clients.Now()); err != nil {
		return target{}, err
	}
	return target{sandbox: found, port: dataPort}, nil
}
