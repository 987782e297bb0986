package exchange

import (
	"net/http"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/sigv4"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// signsRequest tells whether a request is signed, with whatever key, and the credential is one
// by which it is to be signed anew.
func (c Credential) signsRequest(r *http.Request) bool {
	_, signed, _ := sigv4.Read(r.Header)
	return c.Sign == SigV4 && signed
}

// unsign takes a client's signature off, and tells what is to be signed in its place. A
// request that is signed in another way, or with another key, is refused where some credential
// signs: it would be somebody else's.
func (d *draft) unsign(credentials []Credential) ([]Use, error) {
	signing := slices.DeleteFunc(slices.Clone(credentials), func(c Credential) bool { return c.Sign != SigV4 })
	if len(signing) == 0 {
		return nil, nil
	}
	if sigv4.Presigned(d.Request) {
		return nil, &Refused{Sentence: "a request is signed in its URL, and only what is signed in the header is signed anew; a presigned URL can't be used from inside"}
	}
	scope, signed, err := sigv4.Read(d.Header)
	switch {
	case err != nil:
		return nil, &Refused{Sentence: fault.Sentence(err, "a request's signature can't be read"), Cause: err}
	case !signed:
		return nil, nil
	}
	i := slices.IndexFunc(signing, func(c Credential) bool { return c.Placeholder != "" && c.Placeholder == scope.Key })
	if i < 0 {
		return nil, &Refused{Sentence: "a request is signed with a key that is none of the sandbox's placeholders for this host"}
	}
	to, err := scope.Over(d.Request, d.body, d.whole, readable)
	if err != nil {
		return nil, &Refused{Sentence: fault.Sentence(err, "a request can't be signed anew"), Cause: err}
	}
	for _, name := range sigv4.Header() {
		d.Header.Del(name)
	}
	return []Use{{Secret: signing[i].Secret, Where: "signature " + scope.Service + " " + scope.Region, Sign: &to}}, nil
}

// putSignature puts a signature in a request.
func putSignature(r *http.Request, signature http.Header) {
	for _, name := range sigv4.Header() {
		r.Header.Del(name)
		if v := signature.Get(name); v != "" {
			r.Header.Set(name, v)
		}
	}
}
