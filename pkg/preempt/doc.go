// Package preempt decides who is ended so that another can run: the fewest, never in
// vain. It is pure: what it goes by is handed to it, and it changes nothing.
//
//	does it fit a node now?                     FitsNow: nobody is ended
//	does it once those have gone who are ending? Waits: nobody is ended
//	node by node: who may be ended, in order; the shortest prefix that
//	suffices; without those of it who need not go; the best node         Planned
//	none such: nobody is touched                Hopeless
//
// Who may be ended is ordered by priority, the lowest first, then by creation, the
// latest first, then by UID. Of the prefix those are spared first who come last in it.
// The best node is the one with fewest victims, then with the smaller sum of their
// priorities, then by name. Pods of a unit are in one place, that of the first of them
// in order, and all of them count, on whatever nodes they are.
//
// Who is ending already is nobody's victim, and what it leaves is counted on: where the
// best plan needs it, the Asker waits for it, rather than that more are ended. Those
// long overdue are taken to stay, as are those whose grace has long to go.
//
// A plan is proven before it is handed out, and by Certify again before it is carried
// out: with all victims gone it fits, and without any one of them (a unit being one)
// it does not. What is remembered from round to round only saves time.
package preempt
