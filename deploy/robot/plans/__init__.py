"""Plans from outside of the process: a policy server's, such as of a vision-language-action model, or a planner's."""
