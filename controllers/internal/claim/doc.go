// Package claim keeps owner references and label selectors in agreement.
//
// In Kubernetes the owned object names its owner, in one owner reference with controller=true. A controller that
// manages objects by a label selector has to adopt objects that match and have no controller, and to release objects
// that it owns and that do not match any more. [Claimer] does both, and returns what the owner has then. [AddIndex]
// adds the index that [Candidates] uses to find the objects to look at.
//
// A controller claims the objects in its cache before it makes a plan, so the plan never sees an object that belongs to
// somebody else.
package claim
