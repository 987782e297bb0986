package exchange

import "net/http"

// maxStops is how many of a run's answers may end because they stop within a secret. By each one a host that
// gets the secret, and whoever has it say what they like, learns that a guess was right.
const maxStops = 3

// tooManyStops is why a run gets no secret any more.
const tooManyStops = "several answers to this sandbox have stopped within what may be a secret, which is how a secret is guessed letter by letter, so its requests get no secret any more; the operator finds which in the log, and another sandbox has to be made"

// countStopped has a run's answer that can't be handed on counted, if it is within a secret. It tells whether there were too
// many before: nobody learns any more then whether this one is.
func (r *Runs) countStopped(run string, within bool) (tooMany bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stops[run] >= maxStops {
		return true
	}
	if within {
		r.stops[run]++
	}
	return false
}

// stoppedTooOften tells whether the run gets no secret any more.
func (r *Runs) stoppedTooOften(run string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stops[run] >= maxStops
}

// refuseStopped returns an error if held bytes of an answer that has come no further would be handed on within a secret.
// That is so if its host gets one, and what is held ends in the beginning of that secret, of which some
// is within the first bytes. It is on record as an alarm then.
func (e *Exchange) refuseStopped(a *http.Response, s *scan, first int) error {
	asked := gotOfAnswer(a)
	if len(asked.known) == 0 || first == 0 {
		return nil
	}
	of := s.beginning(asked.known, first)
	switch {
	case e.runs.countStopped(e.run, of != ""):
		return &Refused{Sentence: tooManyStops}
	case of != "":
		return &Refused{Sentence: e.keeper.Leaked(contextOf(a), asked.said, Leak{Secret: of, Where: "answer", Answer: true}), Leak: true}
	}
	return nil
}
