package exchange

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/sigv4"
)

// Place is where in a request a placeholder is swapped for its secret.
type Place string

// The places.
const (
	Header Place = "header"
	Basic  Place = "basic" // user or password of basic authentication
	Query  Place = "query" // a parameter's value
	Path   Place = "path"
	Body   Place = "body" // of a form or JSON, of bounded size
)

// Places are all of them.
func Places() []Place { return []Place{Header, Basic, Query, Path, Body} }

// Variable stands for the secret in a Credential's Format.
const Variable = "{secret}"

// Manner is how a secret is put into requests.
type Manner struct {
	// Where are the places in which the placeholder is swapped. If there are none,
	// Header is set in each request, whatever the client put there.
	Where []Place `json:"where,omitempty"`
	// Header is the one that is set, or the only one in which the placeholder is swapped;
	// "" in that case: any.
	Header string `json:"header,omitempty"`
	// Format is the value of the header that is set, with Variable in the place of the secret.
	Format string `json:"format,omitempty"`
	// User makes the value of the header that is set that of basic authentication, with the
	// secret as the password.
	User string `json:"user,omitempty"`
	// Sign has requests signed anew that a client signed with the placeholder; "": none.
	Sign Scheme `json:"sign,omitempty"`
}

// Scheme is how requests are signed.
type Scheme string

// SigV4 is AWS Signature Version 4. The secret itself is given to nobody.
const SigV4 Scheme = "aws-v4"

// Credential is what a host's requests get, without the secret.
type Credential struct {
	Secret      string `json:"secret"` // its name
	Placeholder string `json:"placeholder"`
	// Git is the one operation of git's whose requests get it; "": all requests do.
	Git gitwire.Operation `json:"git,omitempty"`
	// Own lets credentials of the client's own through, beside this one.
	Own bool `json:"own,omitempty"`
	Manner
}

// setsCredential tells whether the credential is set, and not swapped.
func (m Manner) setsCredential() bool { return len(m.Where) == 0 && m.Sign == "" }

// Value is what the header is set to.
func (m Manner) Value(secret string) string {
	if m.User != "" {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(m.User+":"+secret))
	}
	return strings.Replace(m.Format, Variable, secret, 1)
}

// Use is a secret that a request gets.
type Use struct {
	Secret string `json:"secret"`
	// Where it is put: places, the header that is set, or what the signature is for.
	Where string `json:"where"`
	// Sign is what is to be signed with it; nil: the secret itself is put.
	Sign *sigv4.Request `json:"sign,omitempty"`
}

// Given is what a request gets.
type Given struct {
	// Secrets are by their names. Of one that signs it is what of it the host gets, "" if
	// that is nothing.
	Secrets map[string]string
	// Others are by their names what must not be in the answer either: values that the run
	// had before, and those that it may get.
	Others map[string][]string
	// Header is set in the request: its signature.
	Header http.Header
}

// Keeper has the secrets, and records what becomes of them.
type Keeper interface {
	// Secrets records the uses that a request makes, and gives what it gets by them.
	Secrets(ctx context.Context, r Request, uses []Use) (Given, error)
	// Leaked records that a placeholder was about to be sent to where it must not be, or that an answer has ended
	// within a secret, as an alarm. The sentence it gives is for the client.
	Leaked(ctx context.Context, r Request, l Leak) (sentence string)
	// Declined tells that the host does not take secrets that a request got.
	Declined(ctx context.Context, secrets []string)
}

// Request is what is said of a request on record.
type Request struct {
	Method string `json:"method"`
	Path   string `json:"path"` // as the client sent it, without its query
	// Git is what it does with a repository; "": it is none of git's.
	Git gitwire.Operation `json:"git,omitempty"`
}

// requestOf is what is said of a request.
func requestOf(r *http.Request) Request {
	said := Request{Method: r.Method, Path: r.URL.EscapedPath()}
	if one, found, wrong := gitwire.Read(said.Method, said.Path, r.URL.RawQuery); found && wrong == "" {
		said.Git = one.Operation
	}
	return said
}

// credentialsOf are the credentials that a request gets. One for its operation takes the place of
// another that would set the same header.
func (r Request) credentialsOf(all []Credential) []Credential {
	return slices.DeleteFunc(slices.Clone(all), func(c Credential) bool {
		if c.Git != "" {
			return c.Git != r.Git
		}
		return c.setsCredential() && slices.ContainsFunc(all, func(o Credential) bool {
			return o.Git != "" && o.Git == r.Git && o.setsCredential() && o.Header == c.Header
		})
	})
}

// Leak is a placeholder that is left in a request, or a secret's beginning at which an answer stops.
type Leak struct {
	Secret string `json:"secret"` // whose placeholder it is
	Where  string `json:"where"`  // in the request
	// Answer tells that it is no placeholder: an answer has ended since it stopped within what may be the secret.
	Answer bool `json:"answer,omitempty"`
}

// Refused is why a request does not leave, or an answer does not arrive.
type Refused struct {
	Sentence string
	Cause    error // may be nil
	Leak     bool  // there is a Leak, and that is on record
}

// Error implements error.
func (r *Refused) Error() string { return r.Sentence }

// Unwrap gives the cause.
func (r *Refused) Unwrap() error { return r.Cause }
