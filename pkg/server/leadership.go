package server

// Leadership says which replica decides. package kube has it.
type Leadership interface{ State() Leading }

// Leading is how that stands at one moment.
type Leading struct {
	// Here: this replica decides.
	Here bool
	// Leader is where the leader's replica listener is, host:port; "" if nobody
	// knows. A leader that does not decide yet names itself, without Here.
	Leader string
	// Why says what keeps the leader from deciding, for those who wait for it; ""
	// if there is nothing to say.
	Why string
	// Changed is closed when this is no longer how it stands.
	Changed <-chan struct{}
}
