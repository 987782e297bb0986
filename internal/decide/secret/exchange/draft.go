package exchange

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/decide/requestparts"
)

// draft is a request on its way, with its body if that was read.
type draft struct {
	*http.Request
	body  []byte
	whole bool // the body was read
}

// swapsIn tells whether the placeholder is swapped in a place.
func (m Manner) swapsIn(p Place) bool { return slices.Contains(m.Where, p) }

// putSecrets puts secrets where the credentials say, and tells where it did. Without secrets
// it is a rehearsal.
func (d *draft) putSecrets(credentials []Credential, secrets map[string]string) []Use {
	var uses []Use
	for _, c := range credentials {
		secret := secrets[c.Secret]
		if c.setsCredential() {
			d.Header.Set(c.Header, c.Value(secret))
			uses = append(uses, Use{Secret: c.Secret, Where: "header " + c.Header})
			continue
		}
		for _, p := range c.Where {
			if c.Placeholder != "" && d.swapPlaceholder(p, c, secret) {
				uses = append(uses, Use{Secret: c.Secret, Where: string(p)})
			}
		}
	}
	return uses
}

// swapPlaceholder puts a secret in its placeholder's place.
func (d *draft) swapPlaceholder(p Place, c Credential, secret string) (done bool) {
	switch p {
	case Header:
		return d.swapHeader(c, secret)
	case Basic:
		user, password, given := d.BasicAuth()
		if given && strings.Contains(user+"\x00"+password, c.Placeholder) {
			d.SetBasicAuth(strings.ReplaceAll(user, c.Placeholder, secret), strings.ReplaceAll(password, c.Placeholder, secret))
			return true
		}
	case Query:
		d.URL.RawQuery, done = swapForm(d.URL.RawQuery, c.Placeholder, secret)
	case Path:
		raw := d.URL.EscapedPath()
		swapped := strings.ReplaceAll(raw, c.Placeholder, url.PathEscape(secret))
		if path, err := url.PathUnescape(swapped); err == nil && swapped != raw {
			d.URL.Path, d.URL.RawPath = path, swapped
			return true
		}
	case Body:
		return d.swapBody(c, secret)
	}
	return done
}

func (d *draft) swapHeader(c Credential, secret string) (done bool) {
	for name, values := range d.Header {
		if c.Header != "" && !strings.EqualFold(name, c.Header) {
			continue
		}
		for i, v := range values {
			if strings.Contains(v, c.Placeholder) {
				values[i], done = strings.ReplaceAll(v, c.Placeholder, secret), true
			}
		}
	}
	return done
}

func (d *draft) swapBody(c Credential, secret string) (done bool) {
	if !d.whole || !strings.Contains(string(d.body), c.Placeholder) {
		return false
	}
	switch bodyForm(d.Header) {
	case formBody:
		text, done := swapForm(string(d.body), c.Placeholder, secret)
		d.body = []byte(text)
		return done
	case jsonBody:
		quoted, err := jsontext.AppendQuote(nil, secret)
		if err != nil {
			return false // a text that JSON does not have stays out
		}
		d.body = []byte(strings.ReplaceAll(string(d.body), c.Placeholder, string(quoted[1:len(quoted)-1])))
		return true
	}
	return false
}

// swapForm swaps in the values of a query or form.
func swapForm(form, placeholder, secret string) (swapped string, done bool) {
	fields := strings.Split(form, "&")
	for i, field := range fields {
		key, value, _ := strings.Cut(field, "=")
		text, err := url.QueryUnescape(value)
		if err != nil || !strings.Contains(text, placeholder) {
			continue
		}
		fields[i], done = key+"="+url.QueryEscape(strings.ReplaceAll(text, placeholder, secret)), true
	}
	return strings.Join(fields, "&"), done
}

// How a body is written, as far as placeholders are swapped in it or it is looked through.
const (
	otherBody     = ""
	formBody      = "form"
	jsonBody      = "json"
	multipartBody = "multipart" // in which none is swapped
)

// bodyForm is how a body is written.
func bodyForm(h http.Header) string {
	kind, _, err := bodyKind(h)
	if err != nil {
		return otherBody
	}
	return kind
}

// errKind is that servers may take a body for different things.
var errKind = errors.New("more than one Content-Type, or none")

// bodyKind is how a body is written, and the boundary of its parts if it has any. Of a kind with a
// parameter that can't be read the kind counts, as it does with servers.
func bodyKind(h http.Header) (kind, boundary string, err error) {
	values := h.Values("Content-Type")
	if len(values) != 1 {
		return otherBody, "", errKind
	}
	kind, parameters, err := mime.ParseMediaType(values[0])
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return otherBody, "", err
	}
	switch {
	case kind == "application/x-www-form-urlencoded":
		return formBody, "", nil
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		return jsonBody, "", nil
	case kind == "multipart/form-data":
		return multipartBody, parameters["boundary"], nil
	}
	return otherBody, "", nil
}

// requestText is a text of a request. A caseless one may have been written in other letters.
type requestText struct {
	where, text string
	caseless    bool
}

// listTexts lists all texts of a request, as they are and as they are read.
func (d draft) listTexts() []requestText {
	query, err := url.QueryUnescape(d.URL.RawQuery)
	if err != nil {
		query = ""
	}
	all := []requestText{{where: "query", text: query}}
	for _, part := range requestparts.Head(d.Request) {
		all = append(all, requestText{part.Where(), part.Text, part.Caseless})
	}
	if d.whole {
		all = append(all, requestText{where: "body", text: string(d.body)})
		if text, err := url.QueryUnescape(string(d.body)); err == nil && bodyForm(d.Header) == formBody {
			all = append(all, requestText{where: "body", text: text})
		}
	}
	return all
}
