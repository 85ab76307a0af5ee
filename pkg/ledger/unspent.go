package ledger

// Unspent is what the purse would leave if nobody held anything: what it refuses
// can never be.
func (p Purse) Unspent() Purse {
	full := Purse{accounts: make([]purse, len(p.accounts))}
	for i := range p.accounts {
		full.accounts[i].limits = p.accounts[i].limits
	}
	return full
}
