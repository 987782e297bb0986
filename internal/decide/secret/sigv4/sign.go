package sigv4

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Keys are what requests are signed with.
type Keys struct {
	ID     string // no secret
	Secret string
	Token  string    // of a session; "": none. The host gets it
	Until  time.Time // they count; zero: for good
}

// ReadKeys reads what a source has: the secret key of this id, or, without an id, all three
// as the helpers of AWS's own programs print them ({"AccessKeyId": ..., "SecretAccessKey":
// ..., "SessionToken": ...}).
func ReadKeys(id, text string) (Keys, error) {
	if id != "" {
		return Keys{ID: id, Secret: text}, nil
	}
	var printed struct {
		AccessKeyID     string `json:"AccessKeyId"`
		SecretAccessKey string
		SessionToken    string
		Expiration      time.Time
	}
	if json.Unmarshal([]byte(text), &printed) != nil || !ID(printed.AccessKeyID) || printed.SecretAccessKey == "" {
		return Keys{}, fault.New(fault.ErrUnavailable, "it is no JSON with AccessKeyId and SecretAccessKey; if it is the secret key alone, the configuration says with aws.access_key_id whose")
	}
	if strings.ContainsFunc(printed.SessionToken, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Keys{}, fault.New(fault.ErrUnavailable, "its SessionToken has characters that no header has")
	}
	return Keys{ID: printed.AccessKeyID, Secret: printed.SecretAccessKey, Token: printed.SessionToken, Until: printed.Expiration}, nil
}

var keyID = regexp.MustCompile(`^[A-Za-z0-9_]{4,128}$`)

// ID tells whether a text can be the id of a key.
func ID(text string) bool { return keyID.MatchString(text) }

// Sign signs a request as of now, whatever time its client thought that it is, and gives
// what is set in its header. Paths are signed for S3 as they are, and for all else escaped
// once more, as the services want it.
func (q Request) Sign(ctx context.Context, keys Keys, now time.Time) (http.Header, error) {
	if !keys.Until.IsZero() && !now.Before(keys.Until) {
		return nil, fault.New(fault.ErrUnavailable, "the keys of the session have expired; whatever prints them has to print new ones")
	}
	u, err := q.signedURL()
	if err != nil {
		return nil, err
	}
	r := &http.Request{Method: q.Method, Host: q.Host, URL: u, Header: q.Header.Clone(), ContentLength: max(q.Length, 0)}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	for _, name := range Header() {
		r.Header.Del(name)
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) {
		o.DisableURIPathEscaping = q.Service == "s3" || strings.HasPrefix(q.Service, "s3-")
	})
	with := aws.Credentials{AccessKeyID: keys.ID, SecretAccessKey: keys.Secret, SessionToken: keys.Token}
	if err := signer.SignHTTP(ctx, with, r, q.Payload, q.Service, q.Region, now); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the request can't be signed")
	}
	signed := http.Header{}
	for _, name := range Header() {
		if v := r.Header.Get(name); v != "" {
			signed.Set(name, v)
		}
	}
	return signed, nil
}

// signedURL is where the request goes, as it is signed. A request that was read somewhere else is looked at once more.
func (q Request) signedURL() (*url.URL, error) {
	path, err := url.PathUnescape(q.Path)
	signed := Scope{Region: q.Region, Service: q.Service, fields: []string{"host"}}
	switch {
	case err != nil || !strings.HasPrefix(q.Path, "/"):
		return nil, fault.Invalid("a request's path can't be signed")
	case signed.checkScope() != nil:
		return nil, signed.checkScope()
	case len(q.Header) > maxFields || slices.Contains([]string{"", "CONNECT", "TRACE"}, q.Method):
		return nil, fault.Invalid("a request can't be signed")
	}
	return &url.URL{Scheme: "https", Host: q.Host, Path: path, RawPath: q.Path, RawQuery: q.Query}, nil
}
