package exchange

import (
	"io"
	"net/http"
	"slices"
)

// outgoing is a body on its way to a host. A placeholder in it ends the request before
// more than the placeholder's beginning has left.
type outgoing struct {
	io.Closer
	request  *http.Request
	exchange *Exchange
	from     io.Reader
	said     Request
	scan     scan
	plain    unescaper
	meant    scan // of what plain reads, in which nothing is held
	ready    []byte
	err      error
}

// Read implements io.Reader.
func (o *outgoing) Read(p []byte) (int, error) {
	for len(o.ready) == 0 && o.err == nil && len(p) > 0 {
		n, err := o.from.Read(p)
		out, hit := o.scan.take(p[:n], err != nil)
		if hit == "" {
			hit = o.escaped(p[:n], err != nil)
		}
		where := "body"
		if err != nil && hit == "" {
			hit, where = o.inTrailer(), "trailer"
		}
		if hit != "" {
			o.err = o.refuse(hit, where)
			return 0, o.err
		}
		o.ready, o.err = out, err
	}
	n := copy(p, o.ready)
	o.ready = o.ready[n:]
	if len(o.ready) > 0 {
		return n, nil
	}
	return n, o.err
}

// escaped looks for placeholders with escaped letters. Where nothing is escaped, only what
// one can lie across is looked at: the rest was, as it stands.
func (o *outgoing) escaped(more []byte, last bool) (hit string) {
	meant, same := o.plain.take(more, last)
	longest := 0
	for _, needle := range o.meant.needles {
		longest = max(longest, len(needle))
	}
	if same && len(meant) > 2*longest {
		if _, hit = o.meant.take(meant[:longest], false); hit != "" {
			return hit
		}
		meant, o.meant = meant[len(meant)-longest:], scan{needles: o.meant.needles}
	}
	_, hit = o.meant.take(meant, last)
	return hit
}

// inTrailer is a placeholder that came behind the body; "" if there is none.
func (o *outgoing) inTrailer() string {
	for _, values := range o.request.Trailer {
		for _, v := range values {
			for _, needle := range o.scan.needles {
				if (place{text: v}).has([]string{needle}) {
					return needle
				}
			}
		}
	}
	return ""
}

func (o *outgoing) refuse(needle, where string) error {
	leak := Leak{Where: where}
	for _, s := range o.exchange.strays {
		if slices.Contains(s.forms, needle) {
			leak.Secret = s.secret
		}
	}
	return &Refused{Sentence: o.exchange.keeper.Leaked(o.request.Context(), o.said, leak), Leak: true}
}

// incoming is the body of an answer, without secrets.
type incoming struct {
	from   io.ReadCloser
	answer *http.Response
	scan   scan
	ready  []byte
	err    error
}

// Read implements io.Reader.
func (i *incoming) Read(p []byte) (int, error) {
	for len(i.ready) == 0 && i.err == nil && len(p) > 0 {
		n, err := i.from.Read(p)
		i.ready, _ = i.scan.take(p[:n], err != nil)
		if i.err = err; err != nil {
			maskHeader(i.scan.needles, i.answer.Trailer)
		}
	}
	n := copy(p, i.ready)
	i.ready = i.ready[n:]
	if len(i.ready) > 0 {
		return n, nil
	}
	return n, i.err
}

// Close implements io.Closer.
func (i *incoming) Close() error { return i.from.Close() }
