package exchange

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// readContent reads what a body has by name, where placeholders are swapped in bodies: a host
// that takes a credential there takes another one there as well. A body that a server may
// read and that is not read here is an error: of other kinds only files pass. Elsewhere a body is
// not looked at.
func (p *presented) readContent() error {
	if p.Body == nil || p.Body == http.NoBody || !slices.ContainsFunc(p.ofHost, func(c Credential) bool { return c.swapsIn(Body) }) {
		return nil
	}
	kind, boundary, err := bodyKind(p.Header)
	switch {
	case err != nil:
		return unreadBody("it has not one Content-Type that can be read")
	case kind == otherBody && !isFile(p.Header.Get("Content-Type")):
		return unreadBody("a host may read fields in a body of that kind")
	case kind != otherBody && !p.whole:
		return unreadBody("it has more than 1 MiB")
	}
	switch kind {
	case formBody:
		if bytes.Count(p.body, []byte("&"))+bytes.Count(p.body, []byte(";")) >= maxFields {
			return unreadBody(errFields.Error())
		}
		p.content = formOf(string(p.body))
	case jsonBody:
		p.content, err = jsonOf(p.body)
	case multipartBody:
		p.content, err = multipartOf(p.body, boundary)
	case otherBody:
	}
	switch {
	case errors.Is(err, errFields):
		return unreadBody(errFields.Error())
	case err != nil && kind == jsonBody:
		return unreadBody("it is no JSON")
	case err != nil:
		return unreadBody("its parts can't be told from one another")
	}
	return nil
}

// isFile tells whether a Content-Type is that of a file, in which no server looks for fields. Text is
// none: frameworks read JSON and forms in it, too.
func isFile(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return false
	}
	switch top, sub, _ := strings.Cut(kind, "/"); top {
	case "audio", "font", "image", "video":
		return !strings.HasSuffix(sub, "xml")
	}
	switch kind {
	case "application/octet-stream", "application/gzip", "application/pdf", "application/x-tar", "application/zip", "application/zstd":
		return true
	}
	return false
}

// maxFields bounds what is kept of a body: a field takes many times as much memory as its text.
const maxFields = 10_000

// errFields is that a body has too many of them.
var errFields = errors.New("it has more than 10000 fields or texts")

// unreadBody is a refusal of a body that can't be looked through.
func unreadBody(why string) error {
	return &Refused{Sentence: "nobody can see whether a request's body has a credential of its own (" + why + "), and by the policy the host gets one in bodies; send a form or JSON of at most 1 MiB, or a file, or the policy says own_credentials: allow"}
}

// inBody is the field of a form or of JSON that has another credential, where placeholders are
// swapped in bodies.
func (p *presented) inBody() string {
	p.declare(p.content)
	for _, one := range p.content {
		for _, is := range foldParameter(one.name) {
			if bodyHoldsKey(is) && p.another(is, one.value) || p.parameters[is] && one.value != "" && !p.holdsPlaceholder(one.value) {
				return "body, " + is
			}
		}
	}
	return ""
}

// errParts is that a body's parts may be others to other readers.
var errParts = errors.New("parts that readers may tell apart in different ways")

// multipartOf are the parts of a form by their names. Each has one, and behind each mark of a
// part there is one: some readers take more for a boundary than others do.
func multipartOf(body []byte, boundary string) (all []parameter, err error) {
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		if part.FormName() == "" {
			return nil, errParts
		}
		if all = append(all, parameter{part.FormName(), string(value)}); len(all) > maxFields {
			return nil, errFields
		}
	}
	if strings.Count(strings.ToLower(string(body)), "content-disposition") != len(all) {
		return nil, errParts
	}
	return all, nil
}

// jsonOf are the texts in JSON, by the names nearest to them.
func jsonOf(body []byte) (all []parameter, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	names := []string{""} // by depth
	for {
		t, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, err
		}
		depth := d.StackDepth()
		for len(names) <= depth {
			names = append(names, names[len(names)-1])
		}
		names = names[:depth+1]
		within, n := d.StackIndex(depth)
		switch kind := t.Kind(); {
		case kind == '"' && within == '{' && n%2 == 1:
			names[depth] = t.String()
		case kind == '"' && len(all) == maxFields:
			return nil, errFields
		case kind == '"':
			all = append(all, parameter{names[depth], t.String()})
		}
	}
}
