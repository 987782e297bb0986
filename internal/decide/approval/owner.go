package approval

import "slices"

// Requests belong to the owner of the runs that ask: what one owner asks for is never let in
// by a person's look at another's request.

// Owner is whose run asks: "token ID", or "user NAME" of this host. Where neither is known
// (it was erased from the log) it is "owner KEY" of a token's run, and of another the run
// stands for itself: "run ID".
func (a Asker) Owner() string {
	switch {
	case a.Token != "":
		return "token " + a.Token
	case a.User != "" && a.OwnerKey == "":
		return "user " + a.User
	case a.OwnerKey != "":
		return a.keyedOwner()
	}
	return a.itself()
}

// keyedOwner is the owner of a token's run of which nobody knows whose it is.
func (a Asker) keyedOwner() string { return "owner " + a.OwnerKey }

// itself is the owner of a run of which nobody knows whose it is.
func (a Asker) itself() string { return "run " + a.Run }

// isOwner tells whether an owner of a request is the asker's own. A token's run has a key that
// is never erased, so what stands for a run itself is of a user of this host.
func (a Asker) isOwner(owner string) bool {
	switch {
	case owner == a.Owner():
		return true
	case a.OwnerKey != "":
		return owner == a.keyedOwner()
	}
	return a.Token == "" && owner == a.itself()
}

// answers tells whether the answer of an entry that a Store found for the asker's run or policy
// is for the asker. Run ids are names that anybody can choose: that of the scope run, or
// once, is for the runs of the owner that was shown.
func (e Entry) answers(who Asker) bool {
	switch e.Answer.Scope {
	case ScopePolicy, ScopeEverywhere:
		return true
	case ScopeRun, ScopeOnce:
	}
	return slices.ContainsFunc(e.Owners(), who.isOwner)
}

// Owners are whose runs asked, each once. A request has one, but for one that an earlier
// version of Cofferdam joined: its answer is for all whom it shows.
func (r Request) Owners() []string {
	var all []string
	for _, a := range r.Asks {
		if owner := a.Owner(); !slices.Contains(all, owner) {
			all = append(all, owner)
		}
	}
	return all
}

// Name is the run with its owner, for people: "run r1 of ann". Others wrote it.
func (a Asker) Name() string {
	name := "run " + a.Run
	if a.User != "" {
		return name + " of " + a.User
	}
	if a.Token != "" {
		return name + " of token " + a.Token
	}
	return name
}
