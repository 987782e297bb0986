package e2b

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/interpreter"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// maxCell bounds the body of a request to the interpreter: a cell in which each byte is
// escaped, and its environment.
const maxCell = 4 << 20

// cellRoutes are those of the interpreter's port.
type cellRoutes struct{ *Data }

func (d cellRoutes) registerRoutes() {
	d.cells = http.NewServeMux()
	d.cells.HandleFunc("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) { writeObject(w, http.StatusOK, "OK") })
	d.cells.HandleFunc("POST /execute", d.serveREST(d.execute))
	d.cells.HandleFunc("GET /contexts", d.serveREST(d.listContexts))
	d.cells.HandleFunc("POST /contexts", d.serveREST(d.createContext))
	d.cells.HandleFunc("DELETE /contexts/{id}", d.serveREST(d.removeContext))
	d.cells.HandleFunc("POST /contexts/{id}/restart", d.serveREST(d.restartContext))
	d.cells.HandleFunc("/", d.serveREST(func(_ http.ResponseWriter, r *call) error {
		return refuseWith(codeUnimplemented, "the code interpreter has no %s %.100q", r.Method, r.URL.Path)
	}))
}

// authorize is Data.authorize for the interpreter: about contexts clients bring the token of
// the sandbox's ports, and no other.
func (d cellRoutes) authorize(r *http.Request, id string) error {
	shown, token := r.Header.Get(headerTraffic), d.cfg.Access.Contexts(id)
	if r.Header.Get(headerAccess) == "" && r.URL.Path != "/execute" && token != "" && subtle.ConstantTimeCompare([]byte(shown), []byte(token)) == 1 {
		return nil
	}
	return d.Data.authorize(r, id)
}

// executeRequest asks for a cell.
type executeRequest struct {
	Code      *string           `json:"code"`
	ContextID *string           `json:"context_id"`
	Language  *string           `json:"language"`
	EnvVars   map[string]string `json:"env_vars"`
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// readCell decodes a request to the interpreter, and refuses one that nobody can serve now. The
// request's body has its room until the request is over, or a kernel has taken it: a cell may wait
// long for its turn.
func (d cellRoutes) readCell(w http.ResponseWriter, c *call, v any) error {
	if d.cfg.Interpreter == nil {
		return refuseWith(codeUnimplemented, "this daemon runs no cells: run code with commands.run")
	}
	defer limitBody(w)()
	_, err := backend.ReadJSON(c.Request, maxCell, v)
	if err != nil {
		return err
	}
	return cellHeld(c.box.Waits())
}

// cellHeld is heldError in words for cells.
func cellHeld(v suspend.View) error {
	err := heldError(v)
	if about := heldFor(v); err != nil && about != "" {
		return refuseWith(codePrecondition, "%s; the cell that waits goes on when that is answered, and what is run in its context then comes behind it", about)
	}
	return err
}

// execute runs a cell, and answers with what it tells, a line for each event.
func (d cellRoutes) execute(w http.ResponseWriter, c *call) error {
	var body executeRequest
	if err := d.readCell(w, c, &body); err != nil {
		return err
	}
	if body.Code == nil {
		return refuseWith(codeInvalid, "there is no code to run")
	}
	room := &cellRoom{ctx: c.Context()}
	defer room.closeRoom()
	asked := interpreter.Request{
		Code: *body.Code, Context: orEmpty(body.ContextID), Language: orEmpty(body.Language), Env: body.EnvVars,
		Home: c.absolute("", ""), Base: commandEnvironment(c.box.Info(), nil), Take: room.takeBytes, Give: room.giveBytes, Handed: room.handed,
	}
	return d.runCell(w, c, asked)
}

// runCell has a cell run, and answers with what it tells. Of what was asked it keeps nothing once a kernel has it.
func (d cellRoutes) runCell(w http.ResponseWriter, c *call, asked interpreter.Request) error {
	ctx, cancel := context.WithCancelCause(c.Context())
	defer cancel(nil)
	safego.Go(func() { // ends with the call
		if d.awaitGone(ctx, c) {
			cancel(errBroken)
		}
	})
	cell, err := d.cfg.Interpreter.Execute(ctx, c.id, asked)
	if err != nil && !errors.Is(err, fault.ErrForbidden) {
		d.breakIfGone(ctx, c, err) // while it waited for its turn, or for its kernel
		return err
	}
	s := openLines(ctx, w)
	defer s.closeStream()
	if err != nil {
		s.failWith(interpreter.FailureRefused, failureOf(err).Message)
		_ = s.sendLine(lineOfEnd()) // as above
		return nil
	}
	d.breakIfGone(ctx, c, d.followCell(ctx, s, c, cell))
	return nil
}

// breakIfGone breaks the connection of a cell whose sandbox has ended under it. Clients tell by that, and by
// whether the sandbox runs, that it was killed meanwhile: an answer that it is not there would be one to
// another question.
func (d cellRoutes) breakIfGone(ctx context.Context, c *call, err error) {
	if errors.Is(err, errBroken) || errors.Is(context.Cause(ctx), errBroken) || d.isGone(c.id) {
		panic(http.ErrAbortHandler) // net/http's way to break a connection
	}
}

// followCell sends a cell's events until its end. A client that goes away has it interrupted.
// One whose sandbox is being written to disk, because a person is asked, is told so: the cell
// goes on when that is answered, and the next one of its context comes behind it.
func (d cellRoutes) followCell(ctx context.Context, s *lineStream, c *call, cell *interpreter.Cell) error {
	pulse := time.NewTicker(backend.Idle)
	defer pulse.Stop()
	for {
		waits := c.box.Waits()
		if err := cellHeld(waits); err != nil {
			cell.Leave(true)
			s.failWith(interpreter.FailureWaits, failureOf(err).Message)
			_ = s.sendLine(lineOfEnd()) // as above
			return nil
		}
		var err error
		select {
		case e, more := <-cell.Events:
			if !more {
				d.tellAlarms(ctx, s, c)
				_ = s.sendLine(lineOfEnd()) // as above
				cell.Leave(false)
				return nil
			}
			err = s.sendLine(lineOf(e))
		case <-pulse.C:
			err = s.sendLine(map[string]any{"type": "keepalive"})
		case <-waits.Changed:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			cell.Leave(false)
			return err
		}
	}
}

// tellAlarms tells the client of a cell of the alarms that there are.
func (d cellRoutes) tellAlarms(ctx context.Context, s *lineStream, c *call) {
	lines, told := d.alarms.newAlarms(ctx, c.id)
	for _, line := range lines {
		if s.sendLine(lineOf(interpreter.Event{At: time.Now(), Stderr: "\n" + line + "\n"})) != nil {
			return // nobody heard it: the next one does
		}
	}
	told()
}

// cellRoom is the room that a cell's messages take of its token's, for as long as the request
// is there.
type cellRoom struct {
	ctx context.Context //nolint:containedctx // the request's

	mu    sync.Mutex // guards what follows
	over  bool
	taken int // for messages; the request's body has room of its own
}

func (r *cellRoom) takeBytes(n int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return fault.New(fault.ErrExhausted, "the request is over")
	}
	err := backend.Take(r.ctx, n)
	if err == nil {
		r.taken += n
	}
	return err
}

func (r *cellRoom) giveBytes() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		backend.Give(r.ctx, r.taken)
		r.taken = 0
	}
}

// handed gives back the room of the request: nothing of it is held any more. No message has come yet.
func (r *cellRoom) handed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over && r.taken == 0 {
		backend.Release(r.ctx)
	}
}

func (r *cellRoom) closeRoom() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// contextInfo is a context as clients see it.
type contextInfo struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	Cwd      string `json:"cwd"`
}

func (d cellRoutes) listContexts(w http.ResponseWriter, c *call) error {
	if err := d.readCell(w, c, &struct{}{}); err != nil {
		return err
	}
	contexts, err := d.cfg.Interpreter.Contexts(c.Context(), c.id, c.absolute("", ""))
	if err != nil {
		return err
	}
	all := []contextInfo{}
	for _, one := range contexts {
		all = append(all, contextInfo{one.ID, one.Language, one.Dir})
	}
	return writeAnswer(c.Context(), w, http.StatusOK, all)
}

func (d cellRoutes) createContext(w http.ResponseWriter, c *call) error {
	var body struct {
		Language *string           `json:"language"`
		Cwd      *string           `json:"cwd"`
		EnvVars  map[string]string `json:"env_vars"`
	}
	if err := d.readCell(w, c, &body); err != nil {
		return err
	}
	made, err := d.cfg.Interpreter.Create(c.Context(), c.id, interpreter.NewContext{
		Language: orEmpty(body.Language), Dir: c.absolute(orEmpty(body.Cwd), ""), Env: body.EnvVars, Base: commandEnvironment(c.box.Info(), nil),
	})
	if err != nil {
		return err
	}
	return writeAnswer(c.Context(), w, http.StatusOK, contextInfo{made.ID, made.Language, made.Dir})
}

func (d cellRoutes) removeContext(w http.ResponseWriter, c *call) error {
	if err := d.readCell(w, c, &struct{}{}); err != nil {
		return err
	}
	if err := d.cfg.Interpreter.Remove(c.Context(), c.id, c.PathValue("id"), c.absolute("", "")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (d cellRoutes) restartContext(w http.ResponseWriter, c *call) error {
	if err := d.readCell(w, c, &struct{}{}); err != nil {
		return err
	}
	if err := d.cfg.Interpreter.Restart(c.Context(), c.id, c.PathValue("id"), c.absolute("", ""), commandEnvironment(c.box.Info(), nil)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// lineStream is an answer of JSON lines, each flushed. For one goroutine.
type lineStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	release func() // takes back that ctx's end cuts writes off
}

// lineTimeout is how long a client may take for what is sent.
const lineTimeout = time.Minute

func openLines(ctx context.Context, w http.ResponseWriter) *lineStream {
	s := &lineStream{w: w, control: http.NewResponseController(w)}
	s.release = safego.Until(ctx, func() {
		until := time.Now()
		if errors.Is(context.Cause(ctx), token.ErrOver) { // whom it is over for hears why
			until = until.Add(lastWord)
		}
		_ = s.control.SetWriteDeadline(until)
	})
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	_ = s.control.Flush() // clients count a cell's time from here on, though it says nothing yet
	return s
}

func (s *lineStream) closeStream() { s.release() }
