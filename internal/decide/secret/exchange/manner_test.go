package exchange

import (
	"reflect"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestManners(t *testing.T) {
	for _, c := range []struct{ written, want Manner }{
		{Manner{}, Manner{Where: []Place{Header, Basic}}},
		{Manner{Header: "authorization"}, Manner{Header: "Authorization", Format: "Bearer {secret}"}},
		{Manner{Header: "x-api-key"}, Manner{Header: "X-Api-Key", Format: "{secret}"}},
		{Manner{Header: "x-key", Format: "key={secret}"}, Manner{Header: "X-Key", Format: "key={secret}"}},
		{Manner{Header: "Authorization", User: "x-token"}, Manner{Header: "Authorization", User: "x-token"}},
		{Manner{Where: []Place{Query, Body}}, Manner{Where: []Place{Query, Body}}},
		{Manner{Where: []Place{Header}, Header: "x-key"}, Manner{Where: []Place{Header}, Header: "X-Key"}},
	} {
		if got, err := NewManner(c.written); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %+v, %v", c.written, got, err)
		}
	}
	for want, m := range map[string]Manner{
		".header Content-Length is not for secrets": {Header: "content-length"},
		".header Host is not for secrets":           {Where: []Place{Header}, Header: "host"},
		".header may have":                          {Header: "a b"},
		".header is missing":                        {Format: "{secret}"},
		".format must have {secret} in it":          {Header: "X", Format: "Bearer"},
		".format may have printable":                {Header: "X", Format: "{secret}\r\nY: z"},
		".user has a colon":                         {Header: "X", User: "a:b"},
		".user and format":                          {Header: "X", User: "a", Format: "{secret}"},
		".where has \"cookie\"":                     {Where: []Place{"cookie"}},
		".header has no effect":                     {Where: []Place{Query}, Header: "X"},
		".format is for a header":                   {Where: []Place{Query}, Format: "{secret}"},
		".user is for a header":                     {Where: []Place{Query}, User: "a"},
	} {
		if _, err := NewManner(m); !strings.HasPrefix(fault.Sentence(err, ""), want) {
			t.Errorf("%+v: %v, not %s", m, err, want)
		}
	}
}
