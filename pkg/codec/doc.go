// Package codec translates between Kubernetes objects and the words of package
// gpu, and is the sole owner of the names of annotations, labels and resources.
//
//	unbound pod  --Request-->      what it asks for, or every fault that it has
//	node         --Facts-->        the cards that its inventory names
//	placement    --Annotations-->  what the Binding carries
//	bound pod    --Placement-->    what it holds
//	manifest     --Policy-->       settings
//	Tenants, namespaces, ResourceQuotas  --World-->  who owns what, and how much
//	TaskGroup    --Service-->      when its cards are free, and what it takes back
//
// What is promised:
//   - A request that cannot be understood is an error that names the field as a
//     person finds it. It is never read as one that asks for no card.
//   - Placement of what Annotations has written is the same placement again.
//     What cannot be read, or does not match what the pod asks for, claims every
//     card that it might touch: it is never free room.
//   - An inventory with a fault is refused as a whole: no cards, and an error.
//   - A Tenant with a fault is inactive and shares with nobody. What a quota says
//     about cards is counted or reported.
//
// Nothing here calls the API server, reads a clock, logs or decides where a pod
// goes.
package codec
