package approval

import "slices"

// mask takes secrets out of a text.
type mask func(text string) string

// maskAsk returns an ask whose free text has no secrets: what agents, publishers and those who
// start runs wrote. The words that name the matter stay as they are: a person decides about just that.
func (m mask) maskAsk(ask Ask) Ask {
	ask.Evidence = ask.Evidence.Apart()
	for _, text := range append(ask.Evidence.Texts(), &ask.Task, &ask.Because, &ask.Reason, &ask.PolicyName) {
		*text = m(*text)
	}
	lists := []*[]string{&ask.Notes, &ask.WantedBy}
	for _, l := range ask.Evidence.Lists() {
		lists = append(lists, l.Values)
	}
	for _, list := range lists {
		*list = slices.Clone(*list) // it is the caller's
		for i, text := range *list {
			(*list)[i] = m(text)
		}
	}
	return ask
}

// ofTree is of, of all of a tree.
func (m mask) ofTree(tree TreeAsk) TreeAsk {
	tree.Reason, tree.Notes, tree.Members = m(tree.Reason), slices.Clone(tree.Notes), slices.Clone(tree.Members)
	for i, note := range tree.Notes {
		tree.Notes[i] = m(note)
	}
	for i := range tree.Members {
		tree.Members[i].Ask = m.maskAsk(tree.Members[i].Ask)
	}
	return tree
}
