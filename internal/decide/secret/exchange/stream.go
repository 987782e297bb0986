package exchange

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
)

// outgoing is a body on its way to a host. A placeholder in it ends the request before
// more than the placeholder's beginning has left.
type outgoing struct {
	io.Closer
	context  context.Context //nolint:containedctx // the request's
	trailer  http.Header     // the request's, which comes behind the body
	exchange *Exchange
	from     io.Reader
	said     Request
	// alone tells that the host gets a credential, and so none of the client's own behind the
	// body, where more may come than was announced. fields are as presented has them.
	alone  bool
	fields map[string]bool
	form   *signedForm // nil: it is none that could be signed
	scan   scan
	ready  []byte
	err    error
}

// Read implements io.Reader.
func (o *outgoing) Read(p []byte) (int, error) {
	for len(o.ready) == 0 && o.err == nil && len(p) > 0 {
		n, err := o.from.Read(p)
		if o.err = o.form.checkMore(p[:n]); o.err != nil {
			return 0, o.err
		}
		out, of := o.scan.takeMore(p[:n], err != nil)
		where := "body"
		if err != nil && of == "" {
			of, where = o.inTrailer(), "trailer"
		}
		if of != "" {
			o.err = &Refused{Sentence: o.exchange.keeper.Leaked(o.context, o.said, Leak{Secret: of, Where: where}), Leak: true}
			return 0, o.err
		}
		if err != nil && o.alone {
			if where := ownTrailer(o.trailer, o.fields); where != "" {
				o.err = ownCredential(where)
				return 0, o.err
			}
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

// inTrailer is whose placeholder came behind the body; "" if there is none.
func (o *outgoing) inTrailer() string {
	for name, values := range o.trailer {
		for _, v := range append(values, name) {
			if of := o.exchange.strays.findInText(v); of != "" {
				return of
			}
		}
	}
	return ""
}

// incoming is the body of an answer, without secrets.
type incoming struct {
	from     io.Closer
	arrivals arrivals
	answer   *http.Response
	exchange *Exchange
	// unreadable is why nothing could be found in it; "": it could be. It matters once there is
	// something to look for.
	unreadable string
	part       string // the same of a part, where it matters once the host may have the text of a secret
	scan       scan
	ready      []byte
	err        error
}

// Read implements io.Reader.
func (i *incoming) Read(p []byte) (int, error) {
	for len(i.ready) == 0 && i.err == nil && len(p) > 0 {
		b, late, err := i.arrivals.nextArrival(p, &i.scan.tail)
		if late {
			i.handOn()
			continue
		}
		if wrong := i.exchange.hearOf(i.answer, len(b), err); wrong != nil {
			i.err = wrong
			return 0, wrong
		}
		i.takeRead(b, err)
	}
	n := copy(p, i.ready)
	i.ready = i.ready[n:]
	if len(i.ready) > 0 {
		return n, nil
	}
	return n, i.err
}

// takeRead takes what was read, with why no more comes.
func (i *incoming) takeRead(b []byte, err error) {
	end := answerEnd(i.answer, err)
	i.ready, _ = i.scan.takeMore(b, end == wholeEnd)
	why := i.unreadable
	if i.part != "" && i.exchange.runs.knowsValue(i.exchange.run, gotOfAnswer(i.answer).known) {
		why = i.part
	}
	if why != "" && len(i.scan.needles.all) > 0 {
		i.ready, i.err = nil, unreadableAnswer(why)
		return
	}
	if end == openEnd {
		ready := slices.Clone(i.ready)
		if i.err = i.exchange.refuseStopped(i.answer, &i.scan, i.scan.heldBytes()); i.err != nil {
			i.ready = ready
			return
		}
		rest, _ := i.scan.takeMore(nil, true)
		i.ready = append(ready, rest...)
	}
	if i.err = err; err != nil {
		maskHeader(i.scan.needles, i.answer.Trailer)
	}
}

// handOn hands on what was held for long enough.
func (i *incoming) handOn() {
	due := i.scan.tail.dueBytes()
	if i.err = i.exchange.refuseStopped(i.answer, &i.scan, due); i.err == nil {
		i.ready = i.scan.releaseBytes(due)
	}
}

// The ends of an answer. Of a host that gets a secret, whoever has it break off its answer may have done
// that within the secret.
const (
	noEnd = iota
	// wholeEnd is the end that the host meant, or no host that gets a secret is concerned.
	wholeEnd
	// openEnd is the end of a connection by which an answer ends that says no length: it may have broken off.
	openEnd
	// brokenEnd is none: what is held is not handed on, whatever it is.
	brokenEnd
)

// answerEnd is the end of an answer at an error of a read.
func answerEnd(a *http.Response, err error) int {
	switch {
	case err == nil:
		return noEnd
	case len(gotOfAnswer(a).known) == 0:
		return wholeEnd
	case !errors.Is(err, io.EOF) || a.StatusCode == http.StatusSwitchingProtocols:
		return brokenEnd
	case a.ProtoMajor == 1 && a.ContentLength < 0 && len(a.TransferEncoding) == 0:
		return openEnd
	}
	return wholeEnd
}

// hearOf hears what was read of an answer: so many bytes, and at its end what comes behind them.
func (e *Exchange) hearOf(a *http.Response, n int, read error) error {
	if n == 0 && !errors.Is(read, io.EOF) {
		return nil
	}
	return e.hearAnswer(contextOf(a))
}

// Close implements io.Closer. It ends a read that is under way.
func (i *incoming) Close() error { return i.from.Close() }
