"""What policies control: closed-form dynamics and physics engines."""
