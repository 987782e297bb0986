package sandbox

import "context"

// Observer is told what is done with sandboxes, for who counts or traces it. Its
// methods return at once.
type Observer interface {
	// Begin is told that an operation begins. The operation goes on with the
	// context that it returns, and done is called once, at its end.
	Begin(ctx context.Context, o Operation) (_ context.Context, done func(Operation, error))
}

// Operation is something that is done with a sandbox.
type Operation struct {
	Verb    Verb
	Sandbox string // its id; "" while there is none yet
	Run     string // "" while it is not known
	Command string // of VerbExec, at its end
}

// Verb is what is done.
type Verb string

// The verbs.
const (
	VerbCreate   Verb = "create"
	VerbExec     Verb = "exec" // until the process has been started
	VerbDestroy  Verb = "destroy"
	VerbPause    Verb = "pause"
	VerbResume   Verb = "resume"
	VerbSnapshot Verb = "snapshot"
	VerbFork     Verb = "fork"
)

// spans tell an observer of operations from their begin to their end.
type spans struct {
	observer Observer // nil: nobody is told
	registry *registry
}

// beginSpan tells that something begins with a sandbox. done takes the sandbox that came of
// it (nil: the one named) and the command.
func (p spans) beginSpan(ctx context.Context, verb Verb, id string) (_ context.Context, done func(s *Sandbox, command string, err error)) {
	if p.observer == nil {
		return ctx, func(*Sandbox, string, error) {}
	}
	o := Operation{Verb: verb, Sandbox: id}
	if s, err := p.registry.getSandbox(id); err == nil {
		o.Run = s.info.Run
	}
	ctx, end := p.observer.Begin(ctx, o)
	return ctx, func(s *Sandbox, command string, err error) {
		if s != nil {
			o.Sandbox, o.Run = s.info.ID, s.info.Run
		}
		o.Command = command
		end(o, err)
	}
}
